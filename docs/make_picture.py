"""Takes docs/pictures/answer.png: the page of the recorded answer of `pearl demo`.

It needs Chromium; Playwright and Pillow come with the group `browser`.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import pearl
from pearl.cli.commands.demo import FOLDER, QUESTION
from pearl.view.answer_page import answer_page

PICTURE = Path(__file__).parent / "pictures/answer.png"
N_COLOURS = 48
"""As many as letters and marks need: the file stays below 200 kB."""
SHOW_THE_LONGEST = """
const marks = [...document.querySelectorAll("mark")];
marks.sort((a, b) => b.textContent.length - a.textContent.length)[0].scrollIntoView({block: "center"});
scrollTo(0, 0);
"""


def main() -> None:
    """Ask, open the page, show a passage that the answer rests on, take the picture."""
    chromium = shutil.which("chromium")
    assert chromium is not None, "the picture is taken by Chromium, which is not installed here"
    document = pearl.load(FOLDER / "story.txt", name="story.txt")
    answer = pearl.run(pearl.Pearl("recorded:demo").ask(QUESTION, document))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        Path(folder, "answer.html").write_text(answer_page(answer, document), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 760}, device_scale_factor=2)
        page.goto(Path(folder, "answer.html").as_uri())
        page.evaluate(SHOW_THE_LONGEST)
        shot = page.screenshot()
        browser.close()
    with Image.open(io.BytesIO(shot)) as image:
        few = image.convert("RGB").quantize(N_COLOURS, dither=Image.Dither.NONE)
        few.save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
