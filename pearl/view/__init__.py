"""Pages of answers, runs and comparisons for people to check; each is one file that loads nothing else."""
