"""What CTX can be: files and strings → `Document`; passages with spans, tokens, verified quotes."""
