"""A laboratory for the tests of faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.programs import Lab, Programs, replying


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """What starts commands in milliseconds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", "none-1")
        programs = Programs(tmp_path_factory.mktemp("outputs"))
    yield programs
    programs.close()


@pytest.fixture
def lab(programs: Programs, tmp_path: Path) -> Iterator[Lab]:
    """A laboratory with a server of its own."""
    with replying() as server:
        yield Lab(programs, server, tmp_path)
