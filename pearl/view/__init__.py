"""Answers → pages that a person can check: what was asked, planned, read and said, beside the document.

`answer_page` puts a page together; `highlights` marks the document, `pearl.view.page` draws the plan,
`pearl.view.page` the calls. A page is one file without scripts, and loads nothing.
"""
