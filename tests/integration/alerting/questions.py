"""All that our dashboards ask of a Prometheus, and where the links of an alert lead."""

import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tests.dashboards.boards import panels_of
from tests.integration import web
from tests.integration.alerting.hurry import expression
from tools.pictures.prometheus import Prometheus

GENERATED: Final = Path(__file__).parents[3] / "dashboards" / "generated"


def linked_runbook(url: str) -> str:
    """Return the runbook that a link leads to: a page of the exporter about that alert."""
    answer = web.ask(url)
    assert answer.status == 200
    assert f"<h1>{url.rpartition('/')[2]}</h1>" in answer.text
    return answer.text


def linked_dashboard(url: str) -> tuple[dict[str, Any], dict[str, str]]:
    """
    Return the committed dashboard that a link opens, and the variables that it sets.

    All of them are the dashboard's.
    """
    parts = urllib.parse.urlsplit(url)
    uid = parts.path.rpartition("/d/")[2]
    model: dict[str, Any] = json.loads((GENERATED / f"{uid}.json").read_text())
    assert model["uid"] == uid
    pairs = urllib.parse.parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True)
    variables = {name.removeprefix("var-"): value for name, value in pairs}
    assert all(name.startswith("var-") for name, _ in pairs)
    assert variables.keys() <= {variable["name"] for variable in model["templating"]["list"]}
    return model, variables


_LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")
_LINE_OF_ZERO = re.compile(r"[\s(]*0 \* (?:max|sum) by .*\nunless on ", re.DOTALL)
_QUERY_RESULT = re.compile(r"query_result\((.+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query of a dashboard: of a panel, an annotation or a variable."""

    dashboard: str
    title: str
    """Title of the panel with the letter of the query, or the name of the annotation or the variable."""
    query: str
    kind: str
    """`instant`, `range` or `values`."""

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.title}"

    @property
    def is_line_of_zero(self) -> bool:
        """Return whether it asks for a line of 0, which is drawn only where nothing occurred in the whole range."""
        return _LINE_OF_ZERO.match(self.query) is not None

    def hurried(self) -> "Question":
        """Return the same question with shorter ranges."""
        return replace(self, query=expression(self.query))

    def answered(self, prometheus: Prometheus) -> list[Any]:
        """Return the answer of the Prometheus, with the variables filled in as Grafana does."""
        match self.kind:
            case "instant":
                return prometheus.now(self.query)
            case "range":
                return prometheus.over_time(self.query)
            case _:
                return _values(self.query, prometheus)


def questions(model: Mapping[str, Any]) -> Iterator[Question]:
    uid = model["uid"]
    for variable in model["templating"]["list"]:
        if variable["type"] == "query":
            yield Question(dashboard=uid, title=f"${variable['name']}", query=variable["query"], kind="values")
    for annotation in model["annotations"]["list"]:
        yield Question(dashboard=uid, title=annotation["name"], query=annotation["expr"], kind="range")
    for panel in panels_of(model):
        for target in panel.get("targets", ()):
            yield Question(
                dashboard=uid,
                title=f"{panel['title']} {target['refId']}",
                query=target["expr"],
                kind="instant" if target["instant"] else "range",
            )


def _values(query: str, prometheus: Prometheus) -> list[Any]:
    """Ask as Grafana does for `query_result(QUERY)` and `label_values(SELECTOR, LABEL)`."""
    if result := _QUERY_RESULT.fullmatch(query):
        return prometheus.now(result[1])
    match = _LABEL_VALUES.fullmatch(query)
    assert match, query
    selector, label = match.groups()
    counted = f"group by ({urllib.parse.quote(label)}) ({selector})"
    return [series["metric"][label] for series in prometheus.now(counted) if series["metric"].get(label)]
