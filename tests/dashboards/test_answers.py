"""
Answers of every panel for a cluster with known numbers.

`known/series.txt` has the data, in which each number stands for one thing only, and `known/answers*.txt` the expected
answers: rows, numbers, names of lines, units, and colors by value. Both are written by hand, and no program rewrites
them: whoever changes a dashboard works out the new answers from the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest
from tests.dashboards.boards import Panel, panels
from tests.dashboards.stored import KNOWN, NOW, SCRAPE_SECONDS
from tests.integration.prometheus import Prometheus
from tools.pictures.prometheus import Prometheus as Asked

from quotascope.dashboards.files import grafana_dashboards
from quotascope.dashboards.scope import Scope

CHOSEN: Final = {"cluster": "paris", "user": "alice", "client_id": "app", "find": "BAT"}
EVERYWHERE: Final = {**CHOSEN, "user": "", "client_id": ""}
"""Where the names are only searched for."""
Row = dict[str, Any]


class Shown:
    """A reader of panels that writes down what Grafana would show."""

    def __init__(self, prometheus: Asked) -> None:
        self._asked = prometheus

    def lines(self, panel: Panel) -> list[str]:
        """Return a line for each row, number or graph line of a panel, below a line with what all have in common."""
        match panel["type"]:
            case "table":
                return [*self._table(panel)]
            case "stat":
                return [*self._stat(panel)]
            case _:
                return [*self._graph(panel)]

    def _table(self, panel: Panel) -> Iterator[str]:
        options = panel["transformations"][1]["options"]
        titles = options["renameByName"]
        names = sorted(titles, key=options["indexByName"].__getitem__)
        looks = {
            override["matcher"]["options"]: {
                property_["id"]: property_["value"] for property_ in override["properties"]
            }
            for override in panel["fieldConfig"]["overrides"]
        }
        columns = [name for name in names if name != "Value"]
        yield " | ".join(_head(titles[name], looks[titles[name]]) for name in columns)
        sort = panel["options"]["sortBy"][0]["displayName"]
        key = next(name for name in columns if titles[name] == sort)
        rows = self._merged(panel["targets"])
        for row in sorted(rows, key=lambda row: -row.get(key, float("-inf"))):
            cells = (_cell(row.get(name, ""), looks[titles[name]]) for name in columns)
            yield " | ".join(cells).strip()

    def _merged(self, targets: Sequence[Mapping[str, Any]]) -> list[Row]:
        rows: list[Row] = []
        for target in targets:
            for series in self._asked.now(target["expr"]):
                value = f"Value #{target['refId']}"
                new = {**series["metric"], value: float(series["value"][1])}
                for row in rows:
                    if all(row.get(name, new[name]) == new[name] for name in new):
                        row.update(new)
                        break
                else:
                    rows.append(new)
        return rows

    def _stat(self, panel: Panel) -> Iterator[str]:
        defaults = panel["fieldConfig"]["defaults"]
        steps = defaults["thresholds"]["steps"]
        yield f"{defaults['unit']}, {_steps(steps)}; nothing: {defaults['noValue']}"
        for series in self._asked.now(panel["targets"][0]["expr"]):
            value = float(series["value"][1])
            yield f"{series['metric'].get('cluster')}: {_number(value)} {_color(value, steps)}"

    def _graph(self, panel: Panel) -> Iterator[str]:
        defaults = panel["fieldConfig"]["defaults"]
        stacked = defaults["custom"]["stacking"]["mode"] == "normal"
        drawn = defaults["custom"]["thresholdsStyle"]["mode"] != "off"
        steps = f", {_steps(defaults['thresholds']['steps'])}" if drawn else ""
        yield defaults["unit"] + (", stacked" if stacked else "") + steps
        matchers = [override["matcher"] for override in panel["fieldConfig"]["overrides"]]
        limits = {matcher["options"] for matcher in matchers if matcher["id"] == "byFrameRefID"}
        for target in panel["targets"]:
            mark = "-- " if target["refId"] in limits else ""
            named = (
                (_name(target["legendFormat"], series["metric"]), series["value"][1])
                for series in self._asked.now(target["expr"])
            )
            for name, value in sorted(named):
                yield f"{mark}{name}: {_number(float(value))}".strip()


def _head(title: str, look: Mapping[str, Any]) -> str:
    steps = look.get("thresholds", {}).get("steps")
    parts = [look.get("unit", ""), _steps(steps) if steps else ""]
    if "max" in look:
        parts.append(f"full at {look['max']}")
    inner = ", ".join(filter(None, parts))
    return f"{title} ({inner})" if inner else title


def _cell(value: str | float, look: Mapping[str, Any]) -> str:
    text = value if isinstance(value, str) else _number(value)
    for mapping in look.get("mappings", ()):
        text = mapping["options"].get(text, {"text": text})["text"]
    if isinstance(value, str) or "thresholds" not in look:
        return text
    return f"{text} {_color(value, look['thresholds']['steps'])}"


def _number(value: float) -> str:
    return f"{value:.5g}"


def _steps(steps: Sequence[Mapping[str, Any]]) -> str:
    above = ("" if step["value"] is None else f">={step['value']:g}" for step in steps)
    return " ".join(step["color"] + text for step, text in zip(steps, above, strict=True))


def _color(value: float, steps: Sequence[Mapping[str, Any]]) -> str:
    reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return str(reached[-1])


def _name(legend: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda label: labels.get(label[1], ""), legend)


def expected(name: str = "answers.txt") -> dict[tuple[str, str], list[str]]:
    """The answers by dashboard and by type and title of the panel."""
    answers: dict[tuple[str, str], list[str]] = {}
    board, lines = "", list[str]()
    for line in (KNOWN / name).read_text().splitlines():
        if line.startswith("== "):
            board = line.removeprefix("== ")
        elif line.startswith("= "):
            lines = answers.setdefault((board, line.removeprefix("= ")), [])
        elif line.strip():
            lines.append(line.strip())
    return answers


BOARDS: Final = grafana_dashboards(Scope())
PANELS: Final = panels(Scope())


def test_every_panel_has_answers() -> None:
    """Each panel has its expected answers, and no answer is of a panel that does not exist."""
    assert {*expected()} == {*PANELS}
    assert {*expected("answers-recorded.txt")} < {*PANELS}


@pytest.mark.real
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("board", [uid.removeprefix("quotascope-") for uid in BOARDS])
def test_panels_show_what_is_known(
    prometheus: Prometheus, board: str, subtests: pytest.Subtests, *, recorded: bool
) -> None:
    """The file lists every row, number, line, unit and color of every panel; where recording rules are read, too."""
    board_panels = panels(Scope(recorded=recorded))
    chosen = CHOSEN if board == "entity" else EVERYWHERE
    url = f"http://{prometheus.address}"
    source = Asked(url, NOW, 60, chosen, SCRAPE_SECONDS)
    answers = expected()
    if recorded:
        answers |= expected("answers-recorded.txt")
    for (of_board, title), lines in answers.items():
        if of_board == board:
            with subtests.test(msg=title):
                assert Shown(source).lines(board_panels[board, title]) == lines
    assert source.refused == []


GREEN: Final = "0 green"
QUIET: Final[dict[str, dict[str, str]]] = {
    "overview": dict.fromkeys(
        ("Throttled", "Longest delay", "Above 90% of the limit", "Refused (error 89)", "Sources down"), GREEN
    ),
    "mutations": dict.fromkeys(
        ("Throttled", "Buckets in debt", "Wait for the next change", "Refused per second"), GREEN
    ),
    "exporter": {
        "Exporters": "1 green",
        "Sources down": GREEN,
        "Age of the limits": "5 green",
        "Configured rules": "0 blue",
    },
}
COUNTS: Final[dict[str, dict[str, dict[str, str]]]] = {
    "oslo": QUIET,
    "turku": {
        "overview": {title: GREEN for title in QUIET["overview"] if title != "Above 90% of the limit"},
        "mutations": {"Refused per second": GREEN},
        "exporter": {"Exporters": "1 green", "Sources down": GREEN},
    },
    "bergen": {
        "overview": {"Sources down": "1 red"},
        "exporter": QUIET["exporter"] | {"Sources down": "1 red", "Configured rules": "1 blue"},
    },
    "kiel": {"exporter": {"Exporters": "0 red"}},
    "nowhere": {},
}
"""By cluster without a client and by dashboard the numbers that are known of it; there are no others."""


@pytest.mark.real
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_what_is_known_to_be_none_is_zero_and_what_is_unknown_is_no_number(
    prometheus: Prometheus, subtests: pytest.Subtests, *, recorded: bool
) -> None:
    """Healthy clusters show a green 0; without an exporter, source, limits or buckets there is no number."""
    url = f"http://{prometheus.address}"
    stats = [entry for entry in panels(Scope(recorded=recorded)).items() if entry[1]["type"] == "stat"]
    for cluster, numbers in COUNTS.items():
        source = Asked(url, NOW, 60, {"cluster": cluster}, SCRAPE_SECONDS)
        for (board, title), panel in stats:
            with subtests.test(msg=f"{cluster} {board} {title}"):
                number = numbers.get(board, {}).get(title.removeprefix("stat "))
                assert Shown(source).lines(panel)[1:] == ([] if number is None else [f"{cluster}: {number}"])
