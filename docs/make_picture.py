"""Takes the pictures in docs/pictures: one of each kind of page.

It needs Chromium; Playwright, Pillow and reportlab come with the groups `browser` and `dev`.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate

import pearl
from pearl.cli.commands.demo import FOLDER, QUESTION
from pearl.view.answer_page import answer_page

PICTURES = Path(__file__).parent / "pictures"
LETTERS = Path(__file__).parents[1] / "tests/docs/folder"
FIELDS = "patient: str, age: int, seen: date, weight_kg: number?, smoker: yes|no|unknown, drugs: [{name: str, dose_mg: number?}]"
OLDER = "How many patients are older than 60?"
NO_REPLY = ("story.txt", "--model", "scripted:clinic.json")
N_COLOURS = 48
"""As many as letters and marks need: the files stay below 150 kB."""
SHOW_THE_LONGEST = """
const marks = [...document.querySelectorAll("mark")];
marks.sort((a, b) => b.textContent.length - a.textContent.length)[0].scrollIntoView({block: "center"});
scrollTo(0, 0);
"""
OPEN_AN_UNDECIDED_FIELD = "location.hash = document.querySelector('td.open a').hash"


def main() -> None:
    """Make the pages, open each, show what it is about, take its picture."""
    chromium = shutil.which("chromium")
    assert chromium is not None, "the pictures are taken by Chromium, which is not installed here"
    story = pearl.load(FOLDER / "story.txt", name="story.txt")
    answer = pearl.run(pearl.Pearl("recorded:demo").ask(QUESTION, story))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = {
            "answer": (answer_page(answer, story), SHOW_THE_LONGEST),
            "pdf": (page_of_pdf(folder, story.text), "scrollTo(0, 0)"),
            "extraction": (grid(folder), OPEN_AN_UNDECIDED_FIELD),
            "count": (answered(folder, "ask", OLDER, "patients.csv"), "scrollTo(0, 0)"),
            "failed": (answered(folder, "execute", "why.plan", *NO_REPLY), "scrollTo(0, 0)"),
            "results": (results(folder), "scrollTo(0, 0)"),
        }
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for what, (text, script) in pages.items():
                take(browser, folder, what, text, script)
            browser.close()


def page_of_pdf(folder: Path, text: str) -> str:
    """The page of an answer from the story as a PDF, without a model."""
    style = getSampleStyleSheet()["BodyText"]
    path = folder / "story.pdf"
    SimpleDocTemplate(str(path)).build([Paragraph(part, style) for part in text.split("\n\n")])
    document = pearl.load(path)
    page = answer_page(
        pearl.run(pearl.Pearl().ask("Why did Tobias row across every night?", document)), document
    )
    return page.replace(str(path), path.name)


def grid(folder: Path) -> str:
    """The grid of the five letters in docs/extracting.md."""
    return made(folder, "extract", FIELDS, "clinic/", "--model", "scripted:clinic.json", "-o")


def answered(folder: Path, *command: str) -> str:
    """The page of one answer."""
    return made(folder, *command, "--page")


def results(folder: Path) -> str:
    """The page of the results for five documents."""
    rows = str(folder / "letters.jsonl")
    made(folder, "extract", FIELDS, "clinic/", "--model", "scripted:clinic.json", "-o", name=rows)
    return made(folder, "view", rows, "-o")


def made(folder: Path, *command: str, name: str = "page.html") -> str:
    """The file that a command writes, whose name is its last argument."""
    path = folder / name
    if path.exists():
        path.unlink()
    environment = {**os.environ, "PEARL_STORE": str(folder / "store")}
    subprocess.run(
        [sys.executable, "-m", "pearl", *command, str(path)],
        cwd=LETTERS, check=False, env=environment,
    )  # fmt: skip
    return path.read_text(encoding="utf-8")


def take(browser: Browser, folder: Path, name: str, text: str, script: str) -> None:
    """The picture of a page after a script."""
    (folder / f"{name}.html").write_text(text, encoding="utf-8")
    page = browser.new_page(
        viewport={"width": 1200, "height": 760}, device_scale_factor=1.3, reduced_motion="reduce"
    )
    page.goto((folder / f"{name}.html").as_uri())
    page.evaluate(script)
    page.wait_for_timeout(300)
    with Image.open(io.BytesIO(page.screenshot())) as image:
        few = image.convert("RGB").quantize(N_COLOURS, dither=Image.Dither.NONE)
        few.save(PICTURES / f"{name}.png", optimize=True)
    page.close()


if __name__ == "__main__":
    main()
