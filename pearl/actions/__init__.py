"""Action libraries, and the actions that run in Python, search, or ask a model about each row."""
