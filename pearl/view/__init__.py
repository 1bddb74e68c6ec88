"""Pages of answers, runs and comparisons for people who check them.

`answer_page` puts a page together, `page` renders templates and draws plans. A page is one file
without scripts, and loads nothing.
"""
