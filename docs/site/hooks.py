"""Pages of the site that lie outside docs/, links that lead there, and pages that the list lacks."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security_policy.md",
    "experiments/README.md": "experiments.md",
}
"""Files of the project that are pages of the site."""
UNLISTED = "Reference"
"""The section that takes pages which the list of the configuration lacks."""

_LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)")
_MARKED = re.compile(r"^( *```\w+) [\w ]+$", re.M)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and copies of other files that pages link to."""
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / path).read_text("utf-8")))
    for file in list(files.documentation_pages()):
        for path in _linked(file):
            if (uri := _uri(path)).startswith("source/") and uri not in files.src_uris:
                copy = File.generated(config, uri, abs_src_path=str(ROOT / path))
                copy.inclusion = InclusionLevel.NOT_IN_NAV
                files.append(copy)
    listed = set(_listed(config.nav))
    (section,) = (entry[UNLISTED] for entry in config.nav or [] if UNLISTED in entry)
    section += sorted({file.src_uri for file in files.documentation_pages()} - listed)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are on the site, and code blocks without the marks that the tests read."""
    home = posixpath.dirname(_path(page.file))

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(home, match[2]))
        target = posixpath.relpath(_uri(path), posixpath.dirname(page.file.src_uri) or ".")
        return match[1] + target

    return _MARKED.sub(r"\1", _LINK.sub(link, markdown))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The theme's search is a dialogue without a name, which screen readers need."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def _listed(entries: Any) -> Iterator[str]:
    """Every page of a list of pages and sections."""
    if isinstance(entries, str):
        yield entries
    for entry in entries if isinstance(entries, list) else ():
        for value in entry.values() if isinstance(entry, dict) else (entry,):
            yield from _listed(value)


def _linked(file: File) -> Iterator[str]:
    """The files that a page links to, from the root of the project."""
    home = posixpath.dirname(_path(file))
    for match in _LINK.finditer(file.content_string):
        yield posixpath.normpath(posixpath.join(home, match[2]))


def _path(file: File) -> str:
    """Where a page comes from, from the root of the project."""
    return next(
        (path for path, uri in PAGES.items() if uri == file.src_uri), f"docs/{file.src_uri}"
    )


def _uri(path: str) -> str:
    """Where the site has a file or a folder of the project."""
    if (ROOT / path).is_dir():
        path += "/README.md"
    if path in PAGES:
        return PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else f"source/{path}"
