"""The commands: each module defines `command`, a click command with the name of the module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import click


class CommandModule(Protocol):
    """The interface of a module of this folder."""

    command: click.Command


CONTRACT = CommandModule
