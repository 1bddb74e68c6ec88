"""One cluster of Ray for all tests that need one: a node takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contrib.cluster.clustered import started


@pytest.fixture(scope="session")
def cluster() -> Iterator[tuple[str, int]]:
    """The address of a cluster of three nodes, and the process that a SIGUSR1 tells to lose one."""
    with started(3) as found:
        yield found
