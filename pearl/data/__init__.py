"""Samples with gold answers: rows of files and datasets → `Sample`, by the domain that reads them."""
