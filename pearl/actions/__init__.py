"""Action libraries, and the actions that are computed in Python, search, or are carried out row by row."""
