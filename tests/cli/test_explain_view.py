from __future__ import annotations

import io

import pytest
from hypothesis import example, given
from rich.console import Console
from tests.strategies import HOSTILE, broken_texts, texts

from quotascope.cli.explain_view import as_table
from quotascope.exporter.explain import explain
from quotascope.exporter.limits import Limits
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType


def printed(user: str, client_id: str) -> str:
    """What a terminal gets, for a client with a rule of its own."""
    rules = {QuotaType.PRODUCE: QuotaRules({QuotaEntity(user, client_id): 1.0})}
    explanations = explain(Limits(rules=rules, read_at=0.0), user, client_id)
    output = io.StringIO()
    Console(file=output, force_terminal=False, width=120).print(
        as_table(user, client_id, explanations)
    )
    return output.getvalue()


@given(texts | broken_texts, texts | broken_texts)
@example("\x1b[2J\x1b]0;owned\x07", "\u202e\x9b31m\x00")
def test_no_name_moves_the_cursor(user: str, client_id: str) -> None:
    """Nor breaks a line, is taken for markup, or cannot be written."""
    shown = printed(user, client_id)
    assert all(char == "\n" or char.isprintable() for char in shown)
    shown.encode()


@pytest.mark.parametrize("name", ["[bold red]x[/]", "[link=http://evil]x"])
def test_markup_is_text(name: str) -> None:
    """Rich would make colours and links of it."""
    assert name in printed(name, "")


def test_long_names_stay_short() -> None:
    """Ten thousand characters do not push everything else away."""
    assert len(printed(max(HOSTILE, key=len), "a")) < 40_000
