"""Explanations of `quotascope explain` in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.explain import Explanation, LevelRule, asked_client, asked_user, level_text, sentence

from .fitted import Fitted


def as_table(
    user: str, client_id: str | None, explanations: Sequence[Explanation], of_cluster: Iterable[str] = ()
) -> RenderableType:
    """
    Return the eight levels as rows, the quota types as columns, and a sentence for each type.

    ``of_cluster`` are lines on the usage on the whole cluster.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("rule", overflow="fold")
    for explanation in explanations:
        name = explanation.quota_type.label.replace("_", "\n", 1)
        table.add_column(name, justify="right", vertical="bottom", no_wrap=True)
    levels = zip(*(explanation.levels for explanation in explanations), strict=True)
    for number, rules in enumerate(levels, start=1):
        cells = map(_cell, explanations, rules)
        level = level_text(rules[0].entity, user, client_id)
        table.add_row(Text(f"{number} {level}"), *cells)
    title = f"{asked_user(user)}, {asked_client(client_id)}\n"
    sentences = [Text(sentence(explanation, user, client_id)) for explanation in explanations]
    legend = "> applies; - not set; B/s, percent of a thread, mutations/s\n"
    if client_id == "":
        legend = f"(…) not for clients that send no client-id; {legend}"
    bold = Text(title, style="bold")
    return Group(bold, Fitted(table), Text(legend, style="dim"), *sentences, *map(Text, of_cluster))


def _cell(explanation: Explanation, rule: LevelRule) -> Text:
    """Return the quota of a level, marked if it applies, and in brackets if it cannot apply to the client."""
    if rule.bound is None:
        return Text("-", style="dim")
    if not rule.applies:
        return Text(f"({rule.bound:,.10g})", style="dim")
    if rule.entity == explanation.decision.entity:
        return Text(f"> {rule.bound:,.10g}", style="bold green")
    return Text(f"{rule.bound:,.10g}")
