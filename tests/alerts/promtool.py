"""Cases in short YAML, made into what `promtool test rules` reads."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import yaml
from tests.alerts.expressions import EVERYTHING
from tests.prometheus.releases import OLDEST, Release

from quotascope.alerts import Site
from quotascope.alerts.files import rule_files
from quotascope.alerts.render import Rule, alerts
from quotascope.alerts.settings import Profile

CASES: Final = Path(__file__).parent / "cases"
ALERTS: Final[dict[str, Rule]] = {rule["alert"]: rule for rule in alerts(Site())}
ALERTMANAGER: Final = Path(__file__).parents[2] / "docs" / "reference" / "alertmanager.yaml"
"""The example of routes and inhibition rules."""
GENERATED: Final = Path(__file__).parents[2] / "alerts" / "generated"
GRAFANA: Final = "https://grafana.example.com"
EXPORTER: Final = "https://quotascope.example.com"
RUNBOOKS: Final = "https://runbooks.example.com/quotascope"
SITE: Final = Site(
    grafana_url=GRAFANA,
    exporter_url=EXPORTER,
    runbook_url=f"{RUNBOOKS}/{{alert}}.md",
    objectives=EVERYTHING.objectives,
    profile=Profile.ALL,
)
"""A site with links, whose templates the cases compare."""
Labels = dict[str, str]
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SEVERAL: Final = re.compile(r"\{(\d+)\.\.(\d+)\}")
_MANY_ZEROS: Final = re.compile(r"(?<![\w.+])0x(\d+)")
_MANY_NANS: Final = re.compile(r"NaNx(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Series, and the alerts and recorded series that are expected of them."""

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
            "promql_expr_test": [*self._records()],
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

    def _records(self) -> Iterator[dict[str, Any]]:
        for record in self.content.get("records", []):
            samples = record.get("exp_samples", [])
            samples = [{"labels": sample["labels"], "value": float(sample["value"])} for sample in samples]
            yield {**record, "exp_samples": samples}

    def _expected(self, expected: dict[str, Any]) -> dict[str, Any]:
        alert = ALERTS[self.subject]
        return {
            "exp_labels": expected.get("labels", {}),
            "exp_annotations": {
                "summary": alert["annotations"]["summary"],
                "description": expected["description"],
                "runbook_url": f"{RUNBOOKS}/{self.subject}.md",
                "dashboard_url": f"{GRAFANA}/d/{expected['dashboard']}",
                **self._entity_url(expected.get("labels", {})),
            },
        }

    def _entity_url(self, labels: Labels) -> Labels:
        """Return the address of the exporter's page of an alert's entity, without the names that the entity lacks."""
        if labels.get("scope") != "entity":
            return {}
        names = ("user", "client_id")
        named = urlencode([(str(name), labels[name]) for name in names if name in labels])
        return {"entity_url": f"{EXPORTER}/entity{'?' if named else ''}{named}"}


@cache
def cases() -> list[Case]:
    return [
        Case(subject=path.stem, content={**content, "series": _expanded(content["series"])})
        for path in sorted(CASES.glob("*.yaml"))
        # 0x60 is sixty zeros here, not a number
        for content in yaml.load(path.read_text(encoding="utf-8"), yaml.CBaseLoader)  # noqa: S506
    ]


def _expanded(series: Mapping[str, str]) -> dict[str, str]:
    """Return series by name, with a name for each number of a range: ``user="u{00..59}"`` stands for sixty users."""
    values_by_name = {}
    for name, values in series.items():
        numbers = _SEVERAL.search(name)
        if numbers is None:
            values_by_name[name] = values
            continue
        low, high = numbers.groups()
        for number in range(int(low), int(high) + 1):
            values_by_name[f"{name[: numbers.start()]}{number:0{len(low)}}{name[numbers.end() :]}"] = values
    return values_by_name


def _spelled_out(values: str) -> str:
    """Return values as promtool reads them: it knows no ``NaNx3``, and takes ``0x10`` for the number 16."""
    values = _MANY_ZEROS.sub(r"0+0x\1", values)
    return _MANY_NANS.sub(lambda repeated: " ".join(["NaN"] * (int(repeated[1]) + 1)), values)


def rules_of(*sites: Site) -> dict[str, dict[str, Any]]:
    """Return the rules of sites in groups of one rule, by the name of the rule; recording rules come first."""
    return {
        rule.get("alert") or rule["record"]: {**group, "rules": [rule]}
        for site in sites
        for text in rule_files(site).values()
        for group in yaml.load(text, yaml.CSafeLoader)["groups"]
        for rule in group["rules"]
    }


CORE_RULES: Final = rules_of(replace(SITE, profile=Profile.CORE))
RULES: Final = CORE_RULES | rules_of(EVERYTHING, SITE)
"""All rules; alerts of both profiles have the guards of the profile `all`, and no label of teams."""


def _needed(text: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Return the recorded series that an expression needs; some read their own past."""
    names = {name for name in RULES if ":" in name and name in text} - seen
    return names.union(*(_needed(RULES[name]["rules"][0]["expr"], seen | names) for name in names))


def _of_case(case: Case, rules: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups that a case needs, without those that it leaves out: all others would only take time."""
    texts: list[str] = []
    if case.subject in rules:
        rule = rules[case.subject]["rules"][0]
        texts += [rule["expr"], rule.get("annotations", {}).get("description", "")]
    texts += [record["expr"] for record in case.content.get("records", [])]
    needed = {case.subject}.union(*map(_needed, texts))
    needed -= {*case.content.get("without", [])}
    return [{**group, "name": str(number)} for number, (name, group) in enumerate(rules.items()) if name in needed]


def try_case(case: Case, folder: Path, rules: Mapping[str, Any] = RULES, release: Release = OLDEST) -> str:
    """Return promtool's output about a case, empty if all alerts and records are as expected."""
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
    command = [release.program("promtool"), "test", "rules", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
