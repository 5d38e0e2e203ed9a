"""Cases in short YAML, made into what `promtool test rules` reads."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from tests.alerts.expressions import EVERYTHING
from tests.alerts.specification import SPECIFIED

from quotascope.alerts import Site
from quotascope.alerts.book import alerts
from quotascope.alerts.files import rule_files
from quotascope.alerts.rule import Alert

CASES: Final = Path(__file__).parent / "cases"
ALERTS: Final[dict[str, Alert]] = {alert.name: alert for alert in alerts(Site())}
GENERATED: Final = Path(__file__).parents[2] / "alerts" / "generated"
GRAFANA: Final = "https://grafana.example.com"
RUNBOOKS: Final = "https://runbooks.example.com/quotascope"
SITE: Final = Site(grafana_url=GRAFANA, runbook_url=f"{RUNBOOKS}/{{alert}}.md", objectives=EVERYTHING.objectives)
"""With links, whose templates the cases compare."""
Labels = dict[str, str]
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_MANY_ZEROS: Final = re.compile(r"(?<![\w.+])0x(\d+)")
_MANY_NANS: Final = re.compile(r"NaNx(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Series, and what is to come of them."""

    subject: str
    """The alert, or ``records``."""
    content: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.subject}: {self.content['case']}"

    @property
    def fires(self) -> list[dict[str, Any]]:
        fires = self.content.get("fires", [])
        return fires if isinstance(fires, list) else [fires]

    @property
    def silent(self) -> list[str]:
        return list(self.content.get("silent", []))

    @property
    def labels(self) -> list[Labels]:
        return [dict(_LABEL.findall(series.partition("{")[2])) for series in self.content["series"]]

    def as_test(self) -> dict[str, Any]:
        return {
            "name": str(self),
            "interval": self.content.get("every", "1m"),
            "input_series": [
                {"series": series, "values": _spelled_out(values)} for series, values in self.content["series"].items()
            ],
            "alert_rule_test": [*self._firing(), *self._silent()],
            "promql_expr_test": [*self._looks()],
        }

    def _firing(self) -> Iterator[dict[str, Any]]:
        times = dict.fromkeys(expected["at"] for expected in self.fires)
        for time in times:
            yield {
                "eval_time": time,
                "alertname": self.subject,
                "exp_alerts": [self._expected(expected) for expected in self.fires if expected["at"] == time],
            }

    def _silent(self) -> Iterator[dict[str, Any]]:
        for time in self.silent:
            yield {"eval_time": time, "alertname": self.subject, "exp_alerts": []}

    def _looks(self) -> Iterator[dict[str, Any]]:
        for look in self.content.get("records", []):
            samples = [
                {"labels": sample["labels"], "value": float(sample["value"])} for sample in look.get("exp_samples", [])
            ]
            yield {**look, "exp_samples": samples}

    def _expected(self, expected: dict[str, Any]) -> dict[str, Any]:
        alert, specified = ALERTS[self.subject], SPECIFIED[self.subject]
        common = {"severity": specified.severity, "scope": specified.scope}
        return {
            "exp_labels": common | expected.get("labels", {}),
            "exp_annotations": {
                "summary": alert.summary,
                "description": expected["description"],
                "runbook_url": f"{RUNBOOKS}/{self.subject}.md",
                "dashboard_url": f"{GRAFANA}/d/{expected['dashboard']}",
            },
        }


@cache
def cases() -> list[Case]:
    return [
        Case(subject=path.stem, content=content)
        for path in sorted(CASES.glob("*.yaml"))
        # 0x60 is sixty zeros here, not a number
        for content in yaml.load(path.read_text(encoding="utf-8"), yaml.CBaseLoader)  # noqa: S506
    ]


def _spelled_out(values: str) -> str:
    """What promtool reads differently: it knows no ``NaNx3``, and takes ``0x10`` for the number 16."""
    values = _MANY_ZEROS.sub(r"0+0x\1", values)
    return _MANY_NANS.sub(lambda found: " ".join(["NaN"] * (int(found[1]) + 1)), values)


def _rules() -> dict[str, dict[str, Any]]:
    """The groups, each of them with one rule, by the name of the rule; what is recorded comes first."""
    return {
        rule.get("alert") or rule["record"]: {**group, "rules": [rule]}
        # owners are recorded, but no label of the cases
        for site in (EVERYTHING, SITE)
        for text in rule_files(site).values()
        for group in yaml.load(text, yaml.CSafeLoader)["groups"]
        for rule in group["rules"]
    }


RULES: Final = _rules()


def _needed(text: str, known: frozenset[str] = frozenset()) -> set[str]:
    """The recorded series that an expression reads, and those behind them; some read their own past."""
    found = {name for name in RULES if ":" in name and name in text} - known
    return found.union(*(_needed(RULES[name]["rules"][0]["expr"], known | found) for name in found))


def _of_case(case: Case, rules: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The groups that a case is about, without those that it leaves out: all others would only take time."""
    asked = [rules[case.subject]["rules"][0]["expr"]] if case.subject in rules else []
    asked += [look["expr"] for look in case.content.get("records", [])]
    needed = {case.subject}.union(*map(_needed, asked))
    needed -= {*case.content.get("without", [])}
    return [{**group, "name": str(number)} for number, (name, group) in enumerate(rules.items()) if name in needed]


def try_case(case: Case, folder: Path, rules: Mapping[str, Any] = RULES) -> str:
    """What promtool says about a case, empty when all came out as expected; an interval of its own makes long ones short."""
    groups = _of_case(case, rules)
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    document = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": case.content.get("every", "1m"),
        "group_eval_order": [group["name"] for group in groups],
        "tests": [case.as_test()],
    }
    path = folder / "case.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    command = ["promtool", "test", "rules", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
