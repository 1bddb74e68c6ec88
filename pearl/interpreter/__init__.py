"""Checked plan + document → answer: requests, context strategy, token shares, cost bounds, choices."""
