"""Question + table → a query as JSON (`lookup`, `specification`), checked (`checking`) → its rows and figures (`running`)."""
