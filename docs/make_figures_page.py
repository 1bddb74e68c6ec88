"""Writes docs/figures.md from docs/figures.toml; runs the commands of its figures, and tells which are stale.

    python docs/make_figures_page.py [--run | --check] [--only SECTION] [--data FOLDER]

`--run` renews the values and dates in the file; `--check` changes nothing and ends with 1 where a figure is stale: its value
is outside its tolerance, it is older than its days allow, or its command no longer exists. What this machine lacks is told, not run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).parents[1]
Run = Mapping[str, Any]
Figure = Mapping[str, Any]


def page(found: Mapping[str, Any]) -> str:
    """The whole page."""
    lines = [found["head"].lstrip()]
    for section, group in groupby(found["run"], key=lambda run: run["section"]):
        lines.append(f"## {section}\n")
        for run in group:
            how = f", by hand: {run['by_hand']}" if "by_hand" in run else ""
            text = run.get("text", "").strip().replace("\n", " ")
            lines.append(f"`{run['command']}` ({run['date']}{how}). {text}".rstrip() + "\n")
            lines += [f"- {each['of']}: {shown(each)}" for each in run["figures"]]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def shown(figure: Figure) -> str:
    """The value as people read it, with its tolerance."""
    value, within = figure["value"], figure.get("within", 0)
    said = (f"{value:,}" if isinstance(value, int | float) else value) + figure.get("unit", "")
    return f"{said} ± {within}" if within else said


def problem(run: Run, today: date) -> str:
    """Why a run is stale without running it; "" if it is not."""
    words = shlex.split(run["command"])
    while "=" in words[0]:  # variables
        del words[0]
    if words[:2] == ["python", "-m"]:
        is_there = (ROOT / f"{words[2].replace('.', '/')}.py").is_file()
    elif words[0] == "make":
        is_there = (
            re.search(
                rf"^([\w -]+ )?{words[1]}( [\w -]+)?:", (ROOT / "Makefile").read_text("utf-8"), re.M
            )
            is not None
        )
    elif words[0] == "pearl":
        is_there = (ROOT / f"pearl/cli/commands/{words[1]}.py").is_file()
    else:
        is_there = words[1] == "-c" or (ROOT / words[1]).is_file()
    if not is_there:
        return "its command no longer exists"
    age = (today - run["date"]).days
    return f"{age} days old, {run['days']} are allowed" if age > run["days"] else ""


def lacking(run: Run, data: Path) -> str:
    """What this machine lacks for a run; "" if nothing."""
    if "by_hand" in run:
        return f"by hand: {run['by_hand']}"
    if "module" in run and importlib.util.find_spec(run["module"]) is None:
        return f"needs the package {run['module']}"
    if "program" in run and shutil.which(run["program"]) is None:
        return f"needs the program {run['program']}"
    if "variable" in run and run["variable"] not in os.environ:
        return f"needs ${run['variable']}"
    missing = [name for name in run.get("data", ()) if not (data / name).exists()]
    return f"needs {missing[0]} in {data}" if missing else ""


def measured(run: Run, data: Path) -> dict[str, float]:
    """The figures of a run by name."""
    words = [word.replace("DATA/", f"{data}/") for word in shlex.split(run["command"])]
    folder = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as home:
        env = {
            **os.environ,
            "XDG_DATA_HOME": home,
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return {figure["of"]: value_of(figure, done.stdout) for figure in run["figures"]}


def value_of(figure: Figure, said: str) -> float:
    """A figure in what its command printed: by a pattern, or by its place in the JSON, `rows > method=pearl > n`."""
    if "find" in figure:
        match = re.search(figure["find"], said, re.M)
        if match is None:
            raise ValueError(f"the command prints no '{figure['of']}'")
        return float(match[1].replace(",", ""))
    try:
        at = json.loads(said)
    except ValueError:
        at = json.loads([line for line in said.splitlines() if line.startswith("{")][-1])
    for part in figure["key"].split(" > "):
        name, is_choice, wanted = part.partition("=")
        if is_choice:
            at = next(each for each in at if str(each[name]) == wanted)
        else:
            at = at[int(part) if isinstance(at, list) else part]
    return float(at)


def is_off(figure: Figure, value: float) -> bool:
    """Whether a value is outside the tolerance of its figure."""
    within = figure.get("within", 0)
    if isinstance(within, str):
        within = float(within.rstrip(" %")) / 100 * abs(figure["value"])
    return abs(value - figure["value"]) > within + 1e-9


def renewed(text: str, number: int, values: Mapping[str, float], today: date) -> str:
    """The text of the file with the values and the date of a run."""
    head, *blocks = re.split(r"(?m)^(?=\[\[run\]\])", text)
    lines = blocks[number].splitlines(keepends=True)
    for i, line in enumerate(lines):
        lines[i] = re.sub(r"^date = .*", f"date = {today}", line)
        named = re.search(r'\bof = (".*?[^\\]")', line)
        if named and (name := json.loads(named[1])) in values:
            found = values[name]
            value = found if found == int(found) else float(f"{found:.4g}")
            said = int(value) if value == int(value) else value
            lines[i] = re.sub(r"\bvalue = [-\d._]+", f"value = {said}", line)
    blocks[number] = "".join(lines)
    return "".join([head, *blocks])


def stale(found: Mapping[str, Any], text: str, options: argparse.Namespace) -> Iterator[str]:
    """What is stale; without `--check` the values of what can run here are renewed in the file instead."""
    today = date.today()
    for number, run in enumerate(found["run"]):
        if options.only not in (None, run["section"]):
            continue
        name = f"{run['section']}: {run['command']}"
        why, lacks = problem(run, today), lacking(run, options.data)
        is_gone = "exists" in why
        if why and (lacks or options.check or is_gone):
            yield f"{name}\n  {why}"
        if lacks or is_gone:
            click.echo(f"not run: {name}\n  {lacks or why}")
            continue
        click.echo(f"run: {name}")
        try:
            values = measured(run, options.data)
        except (ValueError, LookupError, StopIteration, OSError) as error:
            yield f"{name}\n  {error}"
            continue
        for figure in run["figures"]:
            value = values[figure["of"]]
            if is_off(figure, value):
                told = f"{figure['of']}: {figure['value']} in the file, {value:.6g} today"
                if options.check:
                    yield f"{name}\n  {told}"
                else:
                    click.echo(f"  {told}")
        if not options.check:
            text = renewed(text, number, values, today)
            options.file.write_text(text, encoding="utf-8")


def main() -> int:
    """Write the page; 1 if a figure is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--run", action="store_true", help="run what can run here, and renew values and dates"
    )
    how.add_argument(
        "--check", action="store_true", help="run it, and end with 1 where a figure is stale"
    )
    parser.add_argument("--only", help="a section of the page")
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared/data", help="the folder of the data sets"
    )
    parser.add_argument("--file", type=Path, default=Path(__file__).with_name("figures.toml"))
    options = parser.parse_args()
    text = options.file.read_text(encoding="utf-8")
    found = tomllib.loads(text)
    problems = list(stale(found, text, options)) if options.run or options.check else []
    for each in problems:
        click.echo(f"stale: {each}")
    if not options.check:
        made = page(tomllib.loads(options.file.read_text(encoding="utf-8")))
        options.file.with_suffix(".md").write_text(made, encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
