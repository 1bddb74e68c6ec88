"""Pictures of text, read by OCR; each picture of a TIFF is a page."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from pearl.documents.readers import OPTIONS, ReaderText
from pearl.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp")

_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP")  # others start programs

_SMALL = 2_000  # pixels of the longer side, below which letters are too small for OCR
_MAX_PAGES = 5_000  # of a TIFF: each is read by OCR

EXTRA = "ocr"

BEGINS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"BM", b"RIFF")


def recognises(data: bytes) -> bool:
    """Whether the bytes begin as a picture does, and not as a text that begins with its letters."""
    return data[8:12] == b"WEBP" if data.startswith(b"RIFF") else b"\0" in data[:64]


def read(data: bytes, path: str) -> ReaderText:
    """The text of a picture, or of each picture of a TIFF."""
    from pearl.documents.ocr import read_pictures

    if OPTIONS.get().ocr == "off":
        raise DataError(
            "the file is a picture, and OCR is off", path=path, help="--ocr auto reads it"
        )
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(BytesIO(data), formats=_FORMATS) as picture:
            pages = list(read_pictures(_frames(picture, path), path))
    except DataError:
        raise
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        reason = "" if isinstance(error, UnidentifiedImageError) else f": {str(error)[:100]}"
        raise DataError(
            f"the picture cannot be read{reason}", path=path, help="save it again as .png"
        ) from None
    if not any(page.text for page in pages):
        raise DataError(
            "OCR recognises no text in the picture", path=path,
            help="check that it is upright and sharp, and its language (--ocr-language)",
        )  # fmt: skip
    text = "\n\f".join(page.text for page in pages)
    return ReaderText(text, {n: page.confidence for n, page in enumerate(pages, 1) if page.text})


def _frames(picture: Image, path: str) -> Iterator[tuple[Image, float]]:
    """The pages of a TIFF, or the first frame of another picture, which may be animated; each with its pixels per point, 1."""
    from PIL import Image, ImageOps

    n = getattr(picture, "n_frames", 1) if picture.format == "TIFF" else 1
    if n > _MAX_PAGES:
        raise DataError(f"the file has {n:,} pages, more than {_MAX_PAGES:,}", path=path, help="split it")  # fmt: skip
    for i in range(n):
        picture.seek(i)
        page = ImageOps.exif_transpose(picture)
        if page.has_transparency_data:
            page = page.convert("RGBA")
            page = Image.alpha_composite(Image.new("RGBA", page.size, "white"), page)
        page = page.convert("L")
        if max(page.size) < _SMALL:
            page = page.resize((2 * page.width, 2 * page.height))
        yield page, 1.0
