"""The plan of a column, which no engine is needed for."""

from __future__ import annotations

import pytest

from pearl.contrib.cluster.columns import PlanColumn
from pearl.errors import PearlError, PlanError


def test_a_plan_is_a_text_or_the_name_of_a_file() -> None:
    with pytest.raises(PlanError):
        PlanColumn("New actions:\n- None\n")
    with pytest.raises(PearlError, match="no such file"):
        PlanColumn("missing.plan")
