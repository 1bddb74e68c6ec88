"""The version of this package. It lies this low so that what records it imports nothing above."""

__version__ = "0.1.0"
