"""Office files as archives: what kind they are, and their parts in the form that libraries read."""

from __future__ import annotations

import re
from io import BytesIO
from zipfile import ZipFile

from pearl.documents.document import check_archive
from pearl.errors import DataError

_END_OF_DIRECTORY = b"PK\x05\x06"
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_DOCUMENT_TYPES = (b"<!DOCTYPE", "<!DOCTYP".encode("utf-16-le"))  # also in big-endian UTF-16


def has_part(data: bytes, name: str) -> bool:
    """Whether the directory of an archive names a part; of a truncated archive, whether its bytes do."""
    if not data.startswith(b"PK"):
        return False
    end = data.rfind(_END_OF_DIRECTORY)
    size = int.from_bytes(data[end + 12 : end + 16], "little")
    return name.encode() in data[max(0, end - size) : end] if end >= 0 else name.encode() in data


def office_parts(data: bytes, path: str, suffix: str) -> bytes:
    """An Office file whose parts have the names of Transitional Open XML, whatever form it has."""
    with ZipFile(BytesIO(data)) as archive:
        check_archive(archive, path)
        names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
        parts = {name: archive.read(name) for name in names}
        if any(sign in part for part in parts.values() for sign in _DOCUMENT_TYPES):
            raise DataError("the file declares XML entities, which no Office file may", path=path, help=f"save it again as {suffix}")  # fmt: skip
        if not any(map(_STRICT.search, parts.values())):
            return data
        made = BytesIO()
        with ZipFile(made, "w") as transitional:
            for name in archive.namelist():
                part = parts[name] if name in parts else archive.read(name)
                transitional.writestr(name, _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", part))  # fmt: skip
    return made.getvalue()
