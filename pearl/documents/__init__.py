"""Read files and strings as a `Document`, the `CTX` of plans; passages, token counts, verified quotes."""
