"""The commands: one module is one, with `command`."""
