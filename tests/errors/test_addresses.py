"""Secrets in addresses are never shown or stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import DataError, ModelError
from pearl.errors.escaping import LEFT_OUT, redacted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://me:secret@host/v1", "http://host/v1"),
        ("http://token@host/v1", "http://host/v1"),
        ("HTTPS://me:sec/ret@host", "HTTPS://host"),
        ("http://me:se@cret@host", "http://host"),
        ("https://host/v1?api-key=secret", "https://host/v1"),
        ("https://host/v1#secret", "https://host/v1"),
        ("http://[::1]:80/v1?key=secret", "http://[::1]:80/v1"),
        ("proxy socks5://u:secret@h:1 is 'http://u:secret@h/?k=secret'.",
         "proxy socks5://h:1 is 'http://h/'."),
        ("see http://host/v1, or mail me@home", "see http://host/v1, or mail me@home"),
        ("no address: secret@home?x", "no address: secret@home?x"),
    ],
)  # fmt: skip
def test_secrets_are_removed_from_addresses(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert redacted(shown) == shown


@given(
    st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="\"'<>"), min_size=1),
    st.sampled_from(["http://u:{}@host/v1", "https://{}@host", "http://host/v1?key={}&v=1"]),
)
def test_no_password_and_no_query_is_left(secret: str, address: str) -> None:
    assert redacted(address.format(secret), LEFT_OUT) == address.replace("u:{}", "***").replace(
        "{}", "***"
    ).replace("key=***&v=1", "***")


def test_errors_are_redacted() -> None:
    url = "http://me:secret@host/v1?key=secret"
    for error in (DataError(f"no {url}", path=url, help=url), ModelError(url, kind="auth")):
        assert "secret" not in str(error) + repr(error) + error.message + (error.help or "")
