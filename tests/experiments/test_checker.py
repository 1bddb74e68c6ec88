"""Requests to readers as checkers: what is asked, and how replies are scored."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from click.testing import CliRunner

from experiments.reader import checker


def invoked(*args: str) -> list[str]:
    done = CliRunner().invoke(checker.main, args, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_requests_are_those_of_pearl_and_replies_are_scored(tmp_path: Path) -> None:
    truth, replies = tmp_path / "truth.json", tmp_path / "replies.jsonl"
    requests = list(map(json.loads, invoked("requests", "--n", "6", "--truth", str(truth))))
    told = json.loads(truth.read_text("utf-8"))
    assert [len(told[request["id"]]) for request in requests] == [*[1] * 10, 10, 1, 1, 2]
    by_group = {
        group: [each for r in requests if r["group"] == group for each in told[r["id"]]]
        for group in checker.GROUPS
    }
    claims = by_group["one"]
    assert claims == by_group["ten"]
    assert sum(not each["kind"] for each in claims) == 6
    assert {(each["path"], each["language"]) for each in claims} == {
        (path, language) for path in ("sentence", "field") for language in ("en", "de")
    }
    lines = []
    for request in requests:
        _, user = (message["content"] for message in request["messages"])
        verdicts = []
        for i, each in enumerate(told[request["id"]], start=1):
            assert f"<claim {i}>{each['claim'].strip()}</claim {i}>" in user
            assert f"<passage {i}>\n{each['passage']}\n</passage {i}>" in user
            # of those asked in tens, every lie is accepted
            is_said = not each["kind"] or request["group"] == "ten"
            verdicts.append({"id": i, "verdict": "supported" if is_said else "not stated"})
        reply = {"verdicts": verdicts}
        jsonschema.validate(reply, request["schema"])
        text = "I do not know." if request["id"] == "ten/001" else json.dumps(reply)
        lines.append(json.dumps({"id": request["id"], "text": text}))
    replies.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [line.split() for line in invoked("score", "--truth", str(truth), str(replies))]
    one, ten = (next(row for row in rows if row[:2] == [group, "all"]) for group in ("one", "ten"))
    assert (one[2], one[5], one[-1]) == ("6/6", "0/6", "0")
    n_lies = sum(bool(each["kind"]) for each in told["ten/000"])
    assert (ten[2], ten[5], ten[-1]) == (f"{10 - n_lies}/{10 - n_lies}", f"{n_lies}/{n_lies}", "2")
