"""Logs → pictures and HTML pages. Calls no model and changes no input."""
