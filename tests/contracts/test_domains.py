"""What every domain of `pearl.data.domains` has to be, tomorrow's included."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pearl import plugins
from pearl.actions.library import load_library
from pearl.data.domains import Domain, Source, load_domain, read_samples
from pearl.data.samples import Sample
from pearl.errors import DataError, UsageError
from pearl.planner.examples import load_examples

DOMAINS = plugins.names("pearl.data.domains")

each_domain = pytest.mark.parametrize("domain", DOMAINS)


def write(path: Path, *rows: object) -> str:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


@each_domain
def test_a_domain_names_its_library_and_examples(domain: str) -> None:
    described = load_domain(domain)
    assert isinstance(described, Domain)
    assert described.description.strip()
    assert "\n" not in described.description
    library = load_library(described.library)
    assert load_examples(described.examples, library)


@each_domain
def test_samples_read_again_are_the_same(domain: str, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": " Who\nsold it? ", "document": "Ada did.", "options": ["I", "Ada"],
         "gold": "B", "subsets": ["hard"], "source": {"kept": 1}},
        {"question": "Who left?", "reference": "Nils", "document_path": "story.txt"},
        {"id": 3, "question": "Why?"},
        {"document": "No question at all.", "document_name": "alone"},
    ]  # fmt: skip
    first = list(read_samples(domain, Source(write(tmp_path / "one.jsonl", *rows))))
    samples = [sample for sample in first if isinstance(sample, Sample)]
    assert [sample.id for sample in samples] == ["a", "2", "3", "4"]
    assert samples[0].question == "Who sold it?"
    again = write(tmp_path / "two.jsonl", *(sample.to_dict() for sample in samples))
    paths = {sample.document for sample in samples if isinstance(sample.document, Path)}
    assert paths == {tmp_path / "story.txt"}
    assert list(read_samples(domain, Source(again))) == samples


@each_domain
def test_bad_rows_are_reported_and_others_are_read(domain: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    good = {"id": "a", "question": "Who?"}
    write(path, good, {"question": " "}, good, {"question": 5}, {**good, "id": [1]})
    with path.open("ab") as file:
        file.write(
            b'\n{"id": "b", "question": "\\ud800"}\n{"id": "c"\n{"id": "d", "question": "Q"}'
        )
    found = list(read_samples(domain, Source(str(path))))
    assert [found.index(one) + 1 for one in found if isinstance(one, Sample)] == [1, 8]
    for line, one in enumerate(found, start=1):
        if isinstance(one, DataError):
            assert str(one).startswith(f"{path}:{line}: ")
            assert one.line == line
            assert len(str(one).splitlines()) <= 2
    assert "first used in line 1" in str(found[2])


@each_domain
def test_an_unreadable_file_is_one_error(domain: str, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    for name in ("absent.jsonl", "empty.jsonl"):
        with pytest.raises(DataError) as caught:
            list(read_samples(domain, Source(str(tmp_path / name))))
        assert str(tmp_path / name) in str(caught.value)


@each_domain
def test_unknown_columns_fields_and_splits(domain: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", {"text": "Who?"})
    (sample,) = read_samples(domain, Source(path, columns={"question": "text"}))
    assert isinstance(sample, Sample)
    assert sample.question == "Who?"
    for source, said in (
        (Source(path, columns={"question": "txt"}), "did you mean 'text'"),
        (Source(path, columns={"qestion": "text"}), "did you mean 'question'"),
        (Source(path, split="train"), "no splits"),
    ):
        with pytest.raises(UsageError, match=said):
            list(read_samples(domain, source))
