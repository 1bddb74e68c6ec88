"""Action libraries, native actions (computed in Python), and the parsing of replies to actions."""
