"""Why a program has no result. Each is a `ValueError`, the way in which native actions fail."""

from __future__ import annotations

from pearl.documents.numbers import UnclearNumberError


class ProgramError(ValueError):
    """A program has no result."""


class BadTokenError(ProgramError):
    """A part of the text is nothing of the language."""


class MissingOperandError(ProgramError):
    """An operation lacks an operand, or names a step or an operand that is not there."""


class UnclearOperandError(MissingOperandError, UnclearNumberError):
    """The value of an operand is undecided, or not surely one number."""


class NotGivenError(MissingOperandError):
    """The document does not give an operand: what was asked for it says so."""


class DivisionByZeroError(ProgramError):
    """A divisor is 0, or 0 has a negative exponent."""


class MagnitudeError(ProgramError):
    """A number is too long, too large or too close to 0, or is no real number."""


class UnknownRowError(ProgramError):
    """The table has no row of that name, or a cell of it is no number."""


class AmbiguousRowError(UnknownRowError):
    """The table has several rows of that name."""


class UnfitUnitsError(ProgramError):
    """Operands are in units that cannot be added or compared."""
