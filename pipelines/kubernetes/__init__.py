"""Events and objects of Kubernetes, from the JSON of any sender to changes of pods."""
