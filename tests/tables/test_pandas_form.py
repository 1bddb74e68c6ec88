from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.tables.pandas_form import read_pandas
from pearl.tables.specification import Query, read_query
from tests.root import ROOT
from tests.tables.hostile import CANARY, lines

HAIFA = {"column": "City", "op": "is", "value": "Haifa"}

READ = {
    'df[df["City"] == "Haifa"]': {"where": HAIFA},
    'df[("Haifa" == df.City) & (df["Fee"] >= 100)]': {
        "where": {"all": [HAIFA, {"column": "Fee", "op": "at least", "value": "100"}]}
    },
    'df[100 > df["Fee"]]': {"where": {"column": "Fee", "op": "before", "value": "100"}},
    'df[df["Fee"].between(-1, 2.5)]': {
        "where": {
            "all": [
                {"column": "Fee", "op": "at least", "value": "-1"},
                {"column": "Fee", "op": "at most", "value": "2.5"},
            ]
        }
    },
    'df[~df["City"].str.lower().str.contains("tel aviv|haifa", case=False, na=False)]': {
        "where": {
            "no": {
                "any": [
                    {"column": "City", "op": "contains", "value": "tel aviv"},
                    {"column": "City", "op": "contains", "value": "haifa"},
                ]
            }
        }
    },
    r'df[df["Name"].str.contains("H\&C \(new\)")]': {
        "where": {"column": "Name", "op": "contains", "value": "H&C (new)"}
    },
    'df[df["Name"].str.contains("(a)", regex=False)]': {
        "where": {"column": "Name", "op": "contains", "value": "(a)"}
    },
    'df[df["City"].isin(["Haifa", "Eilat"])][["Name", "Phone"]]': {
        "where": {"column": "City", "op": "in", "value": ["Haifa", "Eilat"]},
        "select": ["Name", "Phone"],
    },
    'df.loc[df.Site.isna(), ["Name"]]': {
        "where": {"column": "Site", "op": "is empty"},
        "select": ["Name"],
    },
    "df.query(\"City == 'Haifa' and not `Clinic name` in ['a', 'b']\")": {
        "where": {
            "all": [HAIFA, {"no": {"column": "Clinic name", "op": "in", "value": ["a", "b"]}}]
        }
    },
    'result = df[df.City == "Haifa"].sort_values(["Fee", "Name"], ascending=[False, True]).head(3)': {
        "where": HAIFA,
        "sort": [{"by": "Fee", "descending": True}, {"by": "Name"}],
        "limit": 3,
    },
    'df.nlargest(2, "Fee")': {"sort": {"by": "Fee", "descending": True}, "limit": 2},
    'df[df.City == "Haifa"]["Name"][:4]': {"where": HAIFA, "select": ["Name"], "limit": 4},
    'len(df[df["City"] == "Haifa"])': {"where": HAIFA, "aggregate": {"function": "count"}},
    'df[df["City"] == "Haifa"].shape[0]': {"where": HAIFA, "aggregate": {"function": "count"}},
    '(df["City"] == "Haifa").sum()': {"where": HAIFA, "aggregate": {"function": "count"}},
    'df["Fee"].mean()': {"aggregate": {"function": "mean", "column": "Fee"}},
    'df["City"].nunique()': {"aggregate": {"function": "count different", "column": "City"}},
    'df.groupby("City")': {"group": ["City"]},
    'df["City"].unique().tolist()': {"group": ["City"]},
    'df.groupby("City").size().sort_values(ascending=False).head(1)': {
        "group": ["City"],
        "aggregate": {"function": "count"},
        "sort": {"by": "count", "descending": True},
        "limit": 1,
    },
    'df.groupby(["City", "Kind"])["Fee"].max().reset_index()': {
        "group": ["City", "Kind"],
        "aggregate": {"function": "max", "column": "Fee"},
    },
    'df.groupby("City").agg({"Fee": ["min", "mean"], "Name": "count"})': {
        "group": "City",
        "aggregate": [
            {"function": "min", "column": "Fee"},
            {"function": "mean", "column": "Fee"},
            {"function": "count", "column": "Name"},
        ],
    },
    'df["City"].value_counts()': {
        "group": "City",
        "aggregate": {"function": "count"},
        "sort": {"by": "count", "descending": True},
    },
}


@pytest.mark.parametrize("text", READ)
def test_an_expression_is_read_as_the_query_that_it_is(text: str) -> None:
    assert read_pandas(text) == read_query(READ[text])


@pytest.mark.parametrize(
    "text",
    [
        'df.head(5)["Fee"].mean()',  # of the first rows alone
        'df.head(5)[df.City == "x"]',
        'df["City"].count().sum()',
        'df[["Name"]]["Fee"]',
        'df[df["City"].str.contains("^Tel")]',
        'df[df["City"].str.startswith("Tel")]',
        'df[df["a"] == df["b"]]',
        "df.sort_values('a', ascending=1)",
    ],
)
def test_what_a_query_cannot_say_is_refused_and_not_approximated(text: str) -> None:
    with pytest.raises(ValueError, match=r"no place|is no |regular expression|order than True"):
        read_pandas(text)


SCRIPT = """
import json, sys
from pearl.tables.checking import QueryError, check
from pearl.tables.pandas_form import read_pandas
from pearl.tables.query_table import QueryTable
from pearl.documents.rows import Row, Rows

table = QueryTable(Rows((Row("", {"City": "Haifa", "Fee": "120"}),)))
events = []

def read(text):
    try:
        return repr(check(read_pandas(text), table))
    except QueryError as error:
        return f"refused: {error}"
    except ValueError as error:
        return f"refused: {error}"

def watch(event, args):
    if event != "compile" and not event.startswith(("object.", "sys._getframe")):
        events.append(f"{event} {args!r:.80}")

texts = json.load(sys.stdin)
for text in ["df[df.City == 'x']", "df.City(", "df.x", "df.nothing()", "df.head(-1)", "df[df.Fee > 'a']"]:
    read(text)  # what is imported late is imported now
sys.addaudithook(watch)
said = [read(text) for text in texts]
n = len(events)
print(json.dumps({"said": said, "events": events[:n]}))
"""


def test_hostile_expressions_reach_nothing(tmp_path: Path) -> None:
    """In a real process: no file is opened, nothing imported, run or connected to, nothing is accepted."""
    (tmp_path / CANARY).write_text(CANARY * 2)
    texts = lines("hostile_pandas.txt")
    assert len(texts) >= 170
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), CANARY: CANARY * 2},
    )
    reply = json.loads(done.stdout)
    assert reply["events"] == []
    for text, said in zip(texts, reply["said"], strict=True):
        assert said.startswith("refused: "), text
        assert CANARY * 2 not in said
    assert [path.name for path in tmp_path.iterdir()] == [CANARY]


@given(st.text(alphabet="df[]().'\"=&|~<>@:,0123 acityhead_len", max_size=60))
def test_any_text_is_a_query_or_an_error(text: str) -> None:
    try:
        assert isinstance(read_pandas(text), Query)
    except ValueError:
        return
