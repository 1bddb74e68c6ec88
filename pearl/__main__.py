"""`python -m pearl` is `pearl`."""

from pearl.cli import main

main()
