"""Question + table → a typed query → the rows and figures it asks for, each with its row numbers.

`lookup` builds the prompt and reads the reply: a query as JSON (`specification`). It is checked
(`checking`: columns and values) and run (`running`). `terms` selects the part of a table that the
prompt shows: a table of any length takes a few hundred tokens.
"""
