"""Answers → pages that a person can check: what was asked, planned, read and said, beside the document.

`answer_page` puts a page together; `highlights` marks the document, `pearl.view.plan_graph` draws the plan,
`pearl.view.timeline` the calls. A page is one file without scripts, and loads nothing.
"""
