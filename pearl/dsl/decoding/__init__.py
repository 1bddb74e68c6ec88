"""`ActionLibrary` → what a constrained decoder is held to: grammars, JSON Schemas, forms of replies."""
