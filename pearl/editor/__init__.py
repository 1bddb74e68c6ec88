"""Plan files and action files in an editor: the features of a language server.

Features are functions of a text and, if they concern actions, of a library; only `server` uses the protocol.
None of them raises an error because of a text: a text in an editor is unfinished most of the time.
"""
