"""Loading plug-ins imports no package that only their use needs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "charset_normalizer datasets docx h11 inscriptis jsonschema_rs llguidance lxml openai pandas pyarrow pypdfium2 "
    "ray tiktoken xllamacpp"
)
CODE = f"""
import sys
from pearl import plugins
for package in (
    "pearl.data.domains", "pearl.documents.readers", "pearl.llm.backends",
    "pearl.llm.backends.openai.servers", "pearl.runs.executors",
):
    for name in plugins.names(package):
        plugins.load(package, name)
    found = {{*"{HEAVY}".split()}} & {{*sys.modules}}
    if found:
        sys.exit(f"{{package}}: {{found}}")
"""


def test_loading_plugins_imports_no_heavy_package() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
