"""Optional dependencies: check that an extra is installed, and say how to install it."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pearl.errors import UsageError
from pearl.plugins import DISTRIBUTION


def require_extra(extra: str, purpose: str, *packages: str) -> None:
    """Check that the packages of an extra are installed, without importing them."""
    for package in packages:
        if find_spec(package) is None:
            raise UsageError(
                f"{purpose} needs {package}, which is not installed", help=install_hint(extra)
            )


def extras() -> dict[str, tuple[str, ...]]:
    """Extra → its missing packages; {} in a source tree whose distribution is not installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        about = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return {}
    missing: dict[str, list[str]] = {
        name: [] for name in about.metadata.get_all("Provides-Extra") or ()
    }
    for requirement in about.requires or ():
        # 'ray>=2; extra == "cluster"'
        _, is_optional, extra = requirement.rpartition("extra ==")
        if not is_optional:
            continue
        package = "".join(takewhile(lambda c: c.isalnum() or c in "._-", requirement))
        try:
            distribution(package)
        except PackageNotFoundError:
            missing.setdefault(extra.strip(" '\")"), []).append(package)
    return {name: tuple(packages) for name, packages in sorted(missing.items())}


def install_hint(extra: str) -> str:
    """The shell command that adds an extra to this installation, with the running `pip` and the source PEARL was installed from."""
    found = shutil.which("pip")
    here = Path(sys.executable).parent
    pip = "pip" if found and Path(found).parent == here else f"{sys.executable} -m pip"
    # `direct_url.json` (PEP 610) is missing in an installation from a package index.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # A source tree that is not installed
        noted = json.dumps(
            {"url": Path(__file__).parents[2].as_uri(), "dir_info": {"editable": True}}
        )
    origin: dict[str, Any] = json.loads(noted or "{}")
    url = str(origin.get("url", ""))
    requirement = f'"{DISTRIBUTION}[{extra}]"'
    if origin.get("dir_info", {}).get("editable"):
        folder = Path(unquote(urlsplit(url).path))
        requirement = f'-e "{"." if folder == Path.cwd() else folder}[{extra}]"'
    elif url:
        vcs = origin.get("vcs_info", {}).get("vcs")
        requirement = f'"{DISTRIBUTION}[{extra}] @ {f"{vcs}+" if vcs else ""}{url}"'
    return f"{pip} install {requirement}"
