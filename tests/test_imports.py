"""Imports have no cycles, and imported packages are declared dependencies."""

from __future__ import annotations

import re
import sys
import tomllib
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from itertools import chain

import grimp
import pytest

from tests.root import ROOT


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("pearl", include_external_packages=True, cache_dir=None)


def test_imports_have_no_cycle(graph: grimp.ImportGraph) -> None:
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 200
    TopologicalSorter(imports).prepare()  # raises CycleError, with the modules in it


def test_the_core_names_no_module_of_contrib() -> None:
    core = [p for p in ROOT.glob("pearl/**/*.py") if "contrib" not in p.relative_to(ROOT).parts]
    assert [p for p in core if re.search(r"[\"' ]pearl\.contrib\.", p.read_text("utf-8"))] == []


def test_imported_packages_are_dependencies(graph: grimp.ImportGraph) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = chain(project["dependencies"], *project["optional-dependencies"].values())
    declared = {_normalised(re.split(r"[^\w.-]", line)[0]) for line in requirements}
    packages = {name.partition(".")[0] for name in graph.modules} - sys.stdlib_module_names
    distributions = packages_distributions()
    # The one reads a grammar once more where a server of the user has installed it; the other is for type checkers.
    optional = {"llguidance", "typing_extensions"}
    for package in packages - {"pearl"} - optional:
        names = {_normalised(name) for name in distributions.get(package, [package])}
        assert names & declared, package


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
