from __future__ import annotations

import pytest

from pearl.documents.rows import Row, Rows
from pearl.tables.columns import typed_columns


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["120", "90", "", "1,315", "ask"], "number"),
        (["120 mg", "90 mg", "7.5 mg"], "number"),
        (["$9,000", "$1,315"], "number"),
        (["12.5%", "3%"], "number"),
        (["Katz Clinic 58", "Levi Clinic 7", "Haddad Pharmacy 61"], "text"),
        (["Herzl Street 12", "Allenby Street 7"], "text"),
        (["12 Herzl St", "7 Allenby St", "9 HaNassi St"], "text"),
        (["03-5551234", "04-5559876"], "text"),
        (["0048", "48", "49"], "text"),
        (["2020-01-01", "May 2021", "unknown"], "date"),
        (["Mon-Fri 8-16", "Sun-Thu 09:00-20:00; Sat 20:00-23:00", "ask"], "hours"),
        (["", " "], "text"),
    ],
)
def test_a_column_is_what_most_of_its_cells_are(cells: list[str], kind: str) -> None:
    (column,) = typed_columns(Rows(tuple(Row("", {"x": cell}) for cell in cells)))
    assert column.kind == kind
