"""All that our dashboards ask of a Prometheus."""

import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.dashboards.typescript import panels_of
from tests.integration.alerting.hurry import expression
from tools.pictures.prometheus import Prometheus

_LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")


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

    def hurried(self) -> "Question":
        """The same, looking back less far."""
        return replace(self, query=expression(self.query))

    def answered(self, prometheus: Prometheus) -> list[Any]:
        """What the Prometheus has; the variables filled in as Grafana does."""
        match self.kind:
            case "instant":
                return prometheus.now(self.query)
            case "range":
                return prometheus.over_time(self.query)
            case _:
                return _values(self.query, prometheus)


def questions(model: Mapping[str, Any]) -> Iterator[Question]:
    """All of a dashboard."""
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
    """As Grafana asks for `label_values(SELECTOR, LABEL)`."""
    found = _LABEL_VALUES.fullmatch(query)
    assert found, query
    selector, label = found.groups()
    counted = f"group by ({urllib.parse.quote(label)}) ({selector})"
    return [series["metric"][label] for series in prometheus.now(counted) if series["metric"].get(label)]
