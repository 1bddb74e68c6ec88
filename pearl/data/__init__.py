"""Samples with gold answers: rows of files and datasets → `Sample`, by domain."""
