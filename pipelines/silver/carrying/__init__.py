"""Points within a history that does not come to rest, with the state that a rebuild needs to resume there.

`pipelines.silver.episodes` has the points at which every resource had an owner, which need no state.
"""
