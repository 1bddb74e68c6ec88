"""Plan files and action files in an editor: colours, and what a language server tells.

Everything is a function of a text and, where actions are meant, of a library; `server` alone knows
the protocol. A text in an editor is unfinished most of the time, so nothing here raises because of it.
"""
