"""Run the command line: `python -m pearl`."""

from pearl.cli import main

main()
