"""`Task` → the messages a language model reads. One module is one agent's prompts.

A document stands first, and every message before the task is the same for all calls over one
document, so that a server's prefix cache serves them; the same holds for the action library, the
rules and the examples of a plan. Nothing is ever replaced inside a text: parts are put one after
the other, so a document may say `CTX` or `{{CTX}}` as it likes.
"""
