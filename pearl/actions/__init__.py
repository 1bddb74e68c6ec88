"""What steps of a plan can call: the library of actions, and those computed in Python."""
