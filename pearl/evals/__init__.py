"""Samples × methods → log → statistics: what an evaluation measures, and how sure it may be."""
