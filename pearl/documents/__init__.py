"""Files and strings → `Document`, which `CTX` stands for; passages, token counts, verified quotes."""
