"""Pages of answers, runs and comparisons for people who check them: one file each, which loads nothing."""
