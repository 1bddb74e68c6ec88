"""Packages of plug-ins that most runs do not use.

The core imports none of them, and runs without them: each registers its plug-ins as entry points in
`pyproject.toml`, as third-party packages do. They import the core, and not each other.
"""
