"""The commands: one module is one, with `command`, a command of click named as the module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import click

__all__ = ["CONTRACT", "CommandModule"]


class CommandModule(Protocol):
    """What a module of this folder looks like to its users."""

    command: click.Command


CONTRACT = CommandModule
