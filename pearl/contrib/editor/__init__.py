"""Plan files and action files in an editor: functions of a text, however unfinished, and of a library; `server` has the protocol."""
