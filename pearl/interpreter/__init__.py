"""Checked plan + document → answer: requests, context strategies, budgets, estimates, choices."""
