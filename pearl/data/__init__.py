"""Read samples with gold answers from rows of files and datasets; each domain has its row format."""
