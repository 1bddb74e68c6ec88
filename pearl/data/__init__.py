"""Samples with gold answers: rows of files → `Sample`, by domain."""
