"""Results of `quotascope rules check` in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.agent_rules import KINDS, Checked, Fact
from quotascope.exporter.untrusted import one_line


def as_json(results: Sequence[Checked]) -> dict[str, object]:
    """Return the results for programs."""
    complete = all(result.complete for result in results)
    return {"complete": complete, "configurations": [_document(result) for result in results]}


def _document(checked: Checked) -> dict[str, object]:
    """Return the result for one configuration, for programs."""
    facts = [
        {
            "name": fact.name,
            "entities": None if fact.kind is None else KINDS[fact.kind],
            "shown": fact.is_shown,
            "unusual_names": fact.is_shown and fact.unusual,
            "reason": fact.reason or None,
            "example": fact.example or None,
        }
        for fact in checked.facts
    ]
    return {**asdict(checked), "complete": checked.complete, "facts": facts}


def as_table(checked: Checked, file: str) -> RenderableType:
    """Return what is shown, what is not, and why."""
    place = f" ({checked.place})" if checked.place else ""
    parts: list[RenderableType] = [Text(f"{file}{one_line(place)}: read as dialect {checked.dialect}"), Text()]
    if checked.refused:
        parts += [Text(f"Pages are refused: {one_line(checked.refused)}", "red"), Text()]
    parts += [_entities(checked), Text(), _node(checked)]
    if not checked.refused:
        for reason, facts in _reasons(checked).items():
            parts += [Text(), Text(f"Not shown, because {one_line(reason)}:")]
            parts += [
                Text(f"  {', '.join(map(_fact_name, facts))}"),
                Text(f"  such as {one_line(facts[0].example)}", "dim"),
            ]
    for remark in checked.remarks:
        parts += [Text(), Text(f"Note: {one_line(remark)}")]
    parts.append(Text())
    if checked.complete:
        parts.append(Text("Everything is shown.", "bold"))
    return Group(*parts)


def additions(checked: Checked) -> Iterator[str]:
    """Yield the changes to make, a line for each: a table would wrap it."""
    if checked.wrongly_excluded:
        yield "Remove these names from excludeObjectNames:"
        yield from (f"  - {one_line(name)}" for name in checked.wrongly_excluded)
        yield ""
    if checked.object_names:
        yield "Add these names to includeObjectNames:"
        yield from (f'  - "{name}"' for name in checked.object_names)
        yield ""
    if checked.additions:
        yield "Put these rules before the others:"
        yield from checked.additions.splitlines()


def _entities(checked: Checked) -> Table:
    """Return the facts about entities as rows, with a column for each kind of entity."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("of clients", *KINDS.values()):
        table.add_column(title, no_wrap=True)
    by_name: dict[str, dict[str, Fact]] = {}
    for fact in checked.facts:
        if fact.kind is not None:
            by_name.setdefault(fact.name, {})[KINDS[fact.kind]] = fact
    for name, facts in by_name.items():
        table.add_row(name, *(_mark(facts[kind]) for kind in KINDS.values()))
    return table


def _node(checked: Checked) -> Table:
    """Return the facts about the node as rows."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("of the node", no_wrap=True)
    table.add_column("", no_wrap=True)
    for fact in checked.facts:
        if fact.kind is None:
            table.add_row(fact.name, _mark(fact))
    return table


def _mark(fact: Fact) -> Text:
    """Return whether a fact is shown, also for entities with unusual names."""
    if not fact.is_shown:
        return Text("✗ no", "red")
    return Text("✓", "green") if fact.unusual else Text("! not with unusual names", "yellow")


def _fact_name(fact: Fact) -> str:
    """Return the name of a fact that is not shown; one that is shown lacks only entities with unusual names."""
    entities = f" of {KINDS[fact.kind]}" if fact.kind is not None else ""
    return f"{fact.name}{entities}{' with unusual names' if fact.is_shown else ''}"


def _reasons(checked: Checked) -> dict[str, list[Fact]]:
    """Return the facts that are not shown, by reason."""
    facts_by_reason: dict[str, list[Fact]] = {}
    for fact in checked.facts:
        if fact.reason:
            facts_by_reason.setdefault(fact.reason, []).append(fact)
    return facts_by_reason
