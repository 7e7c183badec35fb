"""The questions that programs ask, with their parameters: the JSON API and the tools of assistants."""
