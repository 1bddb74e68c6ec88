"""A font whose every letter is the same box: pages look the same whatever fonts there are."""

from __future__ import annotations

import base64
from functools import cache
from io import BytesIO

UNITS = 1000


@cache
def style() -> str:
    """Style that sets every text in boxes."""
    font = base64.b64encode(_font()).decode()
    return (
        "@font-face { font-family: boxes; font-weight: 1 1000; "
        f"src: url(data:font/ttf;base64,{font}); }} "
        "*, *::before, *::after { font-family: boxes !important; font-synthesis: none !important; "
        "letter-spacing: 0 !important; }"
    )


def _font() -> bytes:
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    pen = TTGlyphPen(None)
    pen.moveTo((60, 0))
    for corner in ((60, 500), (440, 500), (440, 0)):
        pen.lineTo(corner)
    pen.closePath()
    nothing = TTGlyphPen(None).glyph()
    font = FontBuilder(UNITS, isTTF=True)
    font.setupGlyphOrder([".notdef", "blank", "box"])
    blanks = dict.fromkeys((0x09, 0x0A, 0x20, 0xA0), "blank")
    font.setupCharacterMap(dict.fromkeys((*range(33, 384), *range(8208, 8704)), "box") | blanks)
    font.setupGlyf({".notdef": nothing, "blank": nothing, "box": pen.glyph()})
    font.setupHorizontalMetrics(dict.fromkeys((".notdef", "blank", "box"), (UNITS // 2, 0)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": "boxes", "styleName": "Regular"})
    font.setupOS2(sTypoAscender=800, sTypoDescender=-200, usWinAscent=800, usWinDescent=200)
    font.setupPost()
    file = BytesIO()
    font.save(file)
    return file.getvalue()
