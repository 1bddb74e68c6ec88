"""Editor support for plan files and action files: functions of a text and a library, and a `server`."""
