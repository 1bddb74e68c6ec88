"""Reports with figures: a domain with its library and examples, and actions that compute in Python."""
