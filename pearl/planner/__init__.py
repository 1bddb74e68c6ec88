"""Question → checked plan, without the document: the prompt, the repair loop, examples, the cache of plans."""
