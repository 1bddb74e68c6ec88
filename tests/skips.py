"""The allowed reasons of skipped tests; any other reason fails the run (tests/conftest.py)."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

NO_SHARED = "the folder ../shared is not beside the checkout"
NO_RAY = "ray is not installed here; make test-ray runs this"
NO_ENGINES = "an engine of data frames is not installed here; make test-ray runs this"
NO_MKDOCS = "MkDocs is not installed here; make test-docs runs this"
NO_FASTAPI = "FastAPI is not installed here; make test-docs runs this"
NO_PLAYWRIGHT = "playwright is not installed here; make test-browser runs this"
NO_CHROMIUM = "there is no Chromium here; apt-get install chromium"
NO_LARGE = "a large package is not installed here; make test-all runs this"
NO_SMOLLM2 = "SmolLM2 is not here; make models fetches it"
NO_WHEEL = "no installed package is given; make test-wheel runs this"
NO_FULL_DEVICE = "no /dev/full on this system"
NO_PIPES = "no named pipes on this system"
NO_PROC = "no /proc on this system"
NO_TESSERACT = "there is no Tesseract here; apt-get install tesseract-ocr"
NO_ROOT = "only root mounts file systems"
NO_STRACE = "there is no strace here; apt-get install strace"
NO_CONTRIB = "pearl/contrib is not here; make test runs this"
NO_MONITORING = "Python 3.12 and later can tell which lines a test executes"
BOUND = "root cannot give up its rights over files here"

ALLOWED = {reason for name, reason in list(globals().items()) if name.isupper()}
"""Every reason above."""

needs_contrib = pytest.mark.skipif(find_spec("pearl.contrib") is None, reason=NO_CONTRIB)
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason=NO_RAY)
needs_fastapi = pytest.mark.skipif(find_spec("fastapi") is None, reason=NO_FASTAPI)
needs_mkdocs = pytest.mark.skipif(find_spec("material") is None, reason=NO_MKDOCS)
needs_tesseract = pytest.mark.skipif(which("tesseract") is None, reason=NO_TESSERACT)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason=NO_ROOT)
needs_strace = pytest.mark.skipif(which("strace") is None, reason=NO_STRACE)
needs_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason=NO_FULL_DEVICE)
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason=NO_PIPES)
needs_monitoring = pytest.mark.skipif(sys.version_info < (3, 12), reason=NO_MONITORING)
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason=NO_PROC)


def needs(package: str) -> pytest.MarkDecorator:
    """A test that needs a large package, which `make setup` does not install."""
    return pytest.mark.skipif(find_spec(package) is None, reason=NO_LARGE)
