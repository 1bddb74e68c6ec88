"""Takes docs/pictures/answer.png: the page of an answer about the shipped story, by the embedded model.

It needs Chromium; Playwright is in the group `browser`, Pillow comes with the extra `pictures`.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import pearl
from pearl.cli.commands.demo import QUESTIONS
from pearl.plugins.files import find_data
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
    path, chromium = find_data("documents", "demo", "story.txt"), shutil.which("chromium")
    assert path is not None, "the shipped documents are part of the package"
    assert chromium is not None, "the picture is taken by Chromium, which is not installed here"
    domain, question = QUESTIONS["story"]
    document = pearl.load(path, name=path.name)
    answer = pearl.run(pearl.Pearl(domain=domain).ask(question, document))
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
