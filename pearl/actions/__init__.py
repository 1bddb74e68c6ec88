"""Action libraries, and the actions computed in Python, by a search or row by row."""
