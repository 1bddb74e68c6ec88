"""Schemas that nobody should write, on the command line: a right result, or a message; time and memory are bounded."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

MEMORY, CPU_S = 3 << 30, 120
"""Of address space and processor time: many times what any of these takes."""
REFUSED, RIGHT, UNDECIDED = 3, 0, 1
STRING = {"type": "string"}
TEXT = "Name: Anna Weber. Code: " + "a" * 40 + "b. Town: Oulu."


def told(value: Any, quote: str) -> dict[str, Any]:
    return {"value": value, "quote": quote}


NAME = told("Anna Weber", "Name: Anna Weber")
CODE = told("a" * 40 + "b", "Code: " + "a" * 40 + "b")


FORKING = f"""
import importlib, json, os, resource, sys, traceback
for name in ("extract", "execute"):
    importlib.import_module("pearl.cli.commands." + name)
for name in ("cli.work", "data.schemas", "runs.session", "runs.extraction", "runs.executors.local", "llm.backends.scripted"):
    importlib.import_module("pearl." + name)
from pearl.cli import run
for line in sys.stdin:
    folder, args = json.loads(line)
    if not (pid := os.fork()):
        resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
        resource.setrlimit(resource.RLIMIT_CPU, ({CPU_S}, {CPU_S}))
        os.chdir(folder)
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            os.environ[name] = os.path.dirname(folder)
        for number, name in (1, "stdout"), (2, "stderr"):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT, 0o600), number)
        code = 70
        try:
            code = run(args)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def commands() -> Iterator[subprocess.Popen[str]]:
    """What starts each command in a process of its own, with bounds, in milliseconds."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@dataclass
class Extract:
    """`pearl extract` of a document in a folder."""

    commands: subprocess.Popen[str]
    folder: Path

    def __call__(self, schema: Any, reply: Any = None) -> tuple[int, str]:
        """The exit code, and what stderr says."""
        folder = self.folder
        data = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
        (folder / "schema.json").write_bytes(data)
        (folder / "doc.txt").write_text(TEXT, encoding="utf-8")
        rules = [{"match": "", "reply": json.dumps(reply or {"name": NAME}, ensure_ascii=False)}]
        (folder / "rules.json").write_text(json.dumps(rules, ensure_ascii=False), encoding="utf-8")
        command = "extract schema.json doc.txt -o out.jsonl --model scripted:rules.json --check off"
        assert self.commands.stdin is not None
        assert self.commands.stdout is not None
        self.commands.stdin.write(json.dumps([str(folder), command.split()]) + "\n")
        self.commands.stdin.flush()
        code = int(self.commands.stdout.readline())
        return code, (folder / "stderr").read_text(encoding="utf-8")


@pytest.fixture
def extract(commands: subprocess.Popen[str], tmp_path: Path) -> Extract:
    """A command in an empty folder, below one with a secret."""
    (tmp_path / "secret.json").write_text('{"type": "string", "description": "hush"}', "utf-8")
    folder = tmp_path / "here"
    (folder / "sub").mkdir(parents=True)
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "sub/name.json").write_text(json.dumps({"$defs": {"Name": STRING}}), "utf-8")
    return Extract(commands, folder)


def value_of(folder: Path) -> Any:
    """The value of the only row."""
    (row,) = map(json.loads, (folder / "out.jsonl").read_text(encoding="utf-8").splitlines())
    return row["value"]


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = an_object(name=STRING)
    for _ in range(depth):
        schema = an_object(inner=schema)
    return schema


def doubling(depth: int) -> dict[str, Any]:
    """2 ** depth leaves in a few lines."""
    below = {
        f"D{i}": an_object(a={"$ref": f"#/$defs/D{i + 1}"}, b={"$ref": f"#/$defs/D{i + 1}"})
        for i in range(depth)
    }
    return {**an_object(name={"$ref": "#/$defs/D0"}), "$defs": {**below, f"D{depth}": STRING}}


REFUSALS: dict[str, Any] = {
    "a reference to itself": {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
    "references in a circle": {**an_object(name={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
    "allOf in a circle": {**an_object(name={"$ref": "#/$defs/A"}), "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}},
    "anyOf in a circle": {**an_object(name={"$ref": "#/$defs/A"}), "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}}},
    "the whole in the whole": {"$ref": "#"},
    "50,000 leaves": an_object(**{f"field_{i}": STRING for i in range(50_000)}),
    "2 ** 40 leaves": doubling(40),
    "2 ** 14 leaves": doubling(14),
    "a file above": an_object(name={"$ref": "../secret.json"}),
    "a file above by its address": an_object(name={"$ref": "sub/../../secret.json"}),
    "an absolute path": an_object(name={"$ref": "/etc/passwd"}),
    "a file's address": an_object(name={"$ref": "file:///etc/passwd"}),
    "a link to another folder": an_object(name={"$ref": "link.json"}),
    "no such file": an_object(name={"$ref": "missing.json"}),
    "another host": an_object(name={"$ref": "//example.com/a.json"}),
    "a reference to nothing": an_object(name={"$ref": "#/$defs/Missing"}),
    "a reference to a number": an_object(name={"$ref": 5}),
    "200 objects in each other": nested(200),
    "100,000 objects in each other": b'{"type":"object","properties":{"a":' * 100_000,
    "a pattern that is none": an_object(name={"type": "string", "pattern": "(a"}),
    "a bound that is none": an_object(name={"type": "integer", "minimum": "two"}),
    "a type that is none": an_object(name={"type": "strung"}),
    "properties that are none": {"type": "object", "properties": [1]},
    "a schema that is a list": [1],
    "a schema that is a text": "name: str",
    "no JSON": b"{",
    "no text": b"\xff\xfe\x00\xd8",
    "nothing to ask for": {"type": "object", "properties": {}},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_extracted_is_refused_in_a_few_lines(name: str, extract: Extract) -> None:
    code, said = extract(REFUSALS[name])
    assert code == REFUSED, said[-2_000:]
    lines = said.strip().splitlines()
    assert 1 <= len(lines) <= 3, said[-2_000:]
    assert max(map(len, lines)) < 500
    assert "root:" not in said
    assert "hush" not in said
    assert not (extract.folder / "out.jsonl").exists()


def test_no_reference_reaches_the_network(extract: Extract) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/a.json"
        code, said = extract(an_object(name={"$ref": address}))
        assert code == REFUSED
        assert len(said.strip().splitlines()) <= 3
        with pytest.raises(TimeoutError):
            server.accept()


LONG = "n" * 500
RIGHTS: dict[str, tuple[Any, Any, Any]] = {
    "10 MB of description": (
        {**an_object(name={**STRING, "description": "a person " * 1_200_000})}, {"name": NAME}, {"name": "Anna Weber"},
    ),
    "a name of 500 characters": (an_object(**{LONG: STRING}), {LONG: NAME}, {LONG: "Anna Weber"}),
    "an Arabic name": (an_object(**{"اسم المريض": STRING}), {"اسم المريض": NAME}, {"اسم المريض": "Anna Weber"}),
    "names that PEARL uses": (
        an_object(document=STRING, value=STRING, quote=STRING, status=STRING),
        dict.fromkeys(("document", "value", "quote", "status"), NAME),
        dict.fromkeys(("document", "value", "quote", "status"), "Anna Weber"),
    ),
    "names that PEARL uses, in a list": (
        an_object(entries={"type": "array", "items": an_object(document=STRING, value=STRING, quote=STRING, status=STRING)}),
        {"entries": [dict.fromkeys(("document", "value", "quote", "status"), NAME)]},
        {"entries": [dict.fromkeys(("document", "value", "quote", "status"), "Anna Weber")]},
    ),
    "a name with a dot": (an_object(**{"a.b": STRING}), {"a.b": NAME}, {"a.b": "Anna Weber"}),
    "a name with marks": (an_object(**{"it's (a) {b}: [c], ?": STRING}), {"it's (a) {b}: [c], ?": NAME}, {"it's (a) {b}: [c], ?": "Anna Weber"}),
    "a recursion that ends": (
        {"$ref": "#/$defs/N", "$defs": {"N": an_object(name=STRING, children={"type": "array", "items": {"$ref": "#/$defs/N"}})}},
        {"name": NAME, "children": []}, {"name": "Anna Weber", "children": []},
    ),
    "a file below": (an_object(name={"$ref": "sub/name.json#/$defs/Name"}), {"name": NAME}, {"name": "Anna Weber"}),
    "keywords that nobody knows": (
        {**an_object(name={**STRING, "widget": "x", "evaluation": {"metric": "exact"}}), "x-y": 1, "if": {}, "$vocabulary": {}},
        {"name": NAME}, {"name": "Anna Weber"},
    ),
    "a default is no value": (an_object(name={**STRING, "default": "Bob"}), {"name": None}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHTS)
def test_what_can_be_extracted_is(name: str, extract: Extract) -> None:
    schema, reply, value = RIGHTS[name]
    code, said = extract(schema, reply)
    assert code == RIGHT, said[-2_000:]
    assert value_of(extract.folder) == value


PATTERNS = ("(a+)+$", "^(a+)+$", "^(a|aa)+$", "^(.*a){25}$", "^([a-z]+)*$X")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_backtracks_ends(pattern: str, extract: Extract) -> None:
    schema = an_object(name=STRING, code={**STRING, "pattern": pattern})
    code, said = extract(schema, {"name": NAME, "code": CODE})
    assert code == UNDECIDED, said[-2_000:]
    assert value_of(extract.folder) == {"name": "Anna Weber"}


def test_a_pattern_of_keys_that_backtracks_ends(extract: Extract) -> None:
    codes = {"type": "object", "patternProperties": {"^(a+)+$": STRING}}
    said_of = [{"key": CODE, "value": told("Oulu", "Town: Oulu")}]
    code, said = extract(an_object(name=STRING, codes=codes), {"name": NAME, "codes": said_of})
    assert code in (RIGHT, UNDECIDED), said[-2_000:]
    assert not value_of(extract.folder)["codes"]


def test_an_enumeration_without_values_has_none(extract: Extract) -> None:
    code, said = extract(an_object(name={"enum": []}))
    assert code in (UNDECIDED, REFUSED), said[-2_000:]
