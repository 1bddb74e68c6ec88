"""Make a small library from drafts of actions for questions, and examples from plans with the gold answer."""
