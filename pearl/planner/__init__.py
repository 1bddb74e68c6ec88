"""Question → checked plan, without the document: prompt, repair loop, examples, plan cache."""
