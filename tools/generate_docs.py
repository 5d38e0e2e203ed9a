"""
Writes what is generated: pages in ``docs/``, ``alerts/generated/`` and ``dashboards/generated/``.

``make docs`` runs it; ``tests/test_docs.py`` and ``tests/dashboards/test_generated.py`` fail when a page differs from
what it would write.
"""

from __future__ import annotations

import re
import sys
from itertools import groupby
from pathlib import Path

from quotascope.alerts import Site
from quotascope.alerts.files import rule_files
from quotascope.alerts.runbook import with_defaults
from quotascope.alerts.settings import Profile
from quotascope.cli.alerts_config import alerts_reference
from quotascope.cli.options import CONNECTOR
from quotascope.dashboards.files import file_text, grafana_dashboards
from quotascope.dashboards.scope import Scope
from quotascope.exporter.config.reference import reference
from quotascope.metrics.catalog import Family, families
from quotascope.metrics.kafka.entities import TYPE_LABELS
from quotascope.pipeline.request_log.schema import REQUESTS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # runs as a script, while tests import its parts

from tools import newest  # noqa: E402 - needs the path
from tools.alerts_page import alerts_page  # noqa: E402
from tools.llms import llms_txt  # noqa: E402
from tools.releases_table import with_table  # noqa: E402

DOCS = ROOT / "docs"
ALERTS = ROOT / "alerts" / "generated"
RUNBOOKS = ROOT / "alerts" / "runbooks"
DASHBOARDS = ROOT / "dashboards" / "generated"
_HEAD = """\
# Metrics

All metrics of `quotascope serve`.

- Names that end in `_total` are counters, which start at 0 with the broker or exporter; all others are gauges.
- Request time is in **threads**: 1 is one busy thread, Kafka's 100 percent.
- Rates are over the broker's [quota window](words.md#window) (default 11 x 1 s). Controller mutations and [exempt request time](words.md#exempt-request-time) are measured over the last 30 to 60 s (`metrics.num.samples` x `metrics.sample.window.ms`).
- Throttle times and delays are averages over the last 30 to 60 s, and keep their last value for as long after the last throttle.
- A value that a broker does not report is absent ([by agent](../start/dialects.md)); there are no NaN values and no timestamps.
- `process_*` are those of Prometheus's client libraries: CPU time, memory, file descriptors, start time. They need `/proc`.
- *entity* is `user` and `client_id`: decoded names, empty if the quota is for the other one alone.
- `broker` is the node ID of a broker or controller. Limits of clients have no `broker`: they apply on each one separately. Limits and utilization are absent when unlimited.
- `quota_type` is {types}.
- *rule* is `rule` (such as `2 alice / <default>`), `level`, `rule_user` and `rule_client_id`; a default is `<default>`. Levels, strongest first: `user_client`, `user_default_client`, `user`,
  `default_user_client`, `default_user_default_client`, `default_user`, `client`, `default_client`.
- `direction` is `leader`, `follower` or `alter_log_dirs` for replication, `copy` or `fetch` for remote storage.
- *tags* are the tags of a [custom quota callback](../start/jmx-exporter.md#custom-quota-callbacks), one label each. Every series has the label `cluster` if it is configured.
- In brackets: the MBean and attribute, request or configuration key of Kafka that a value comes from.
"""
_SHORT = {
    "*entity*": "`user`, `client_id`",
    "*rule*": "`rule`, `level`, `rule_user`, `rule_client_id`",
}
"""Names of label sets that many families have in common."""
_LABELED = re.compile(
    r" (of|by) this (quota entity|quota rule|listener|IP address)(?! \()| on (this|each) broker| under the tags of a custom quota callback|; absent when unlimited|, which all clients of the broker share| since (the broker|the node|it) started"
)
"""
Texts that the page says once instead of in each line: by labels in front of a line, at the top of the page, or by
family.
"""
_TESTED = re.compile(r"(<!-- generated: versions -->)\n.*?(<!-- end -->)", re.DOTALL)
_CONNECTOR = re.compile(rf"{re.escape(CONNECTOR.rpartition(':')[0])}:[\d.]+")
_COLUMNS = re.compile(r"(?<=## The table `requests`\n\n)(.*\n\n)(?:- .*\n)+")
_OWN = "computed"
"""Source in the page for families that Kafka does not have."""
_TITLES = {
    "kafka_quota_": "Kafka's quotas",
    "quotascope_": "The exporter",
}


def pages() -> dict[Path, str]:
    """Return the generated pages by path."""
    return {
        DOCS / "reference" / "metrics.md": metrics_page(),
        DOCS / "reference" / "configuration.yaml": reference(),
        DOCS / "reference" / "alerts.md": alerts_page(),
        DOCS / "start" / "dialects.md": with_table(dialects_page()),
        DOCS / "reference" / "alerts.yaml": alerts_reference(),
        DOCS / "llms.txt": llms_txt(),
        **{ALERTS / name: text for name, text in rule_files(Site()).items()},
        ALERTS / "all" / "quotascope-alerts.yaml": rule_files(Site(profile=Profile.ALL))["quotascope-alerts.yaml"],
        **_dashboards(),
        **runbook_files(),
        **connector_pages(),
    }


def _dashboards() -> dict[Path, str]:
    dashboards = grafana_dashboards(Scope())
    return {DASHBOARDS / f"{uid}.json": file_text(dashboard) for uid, dashboard in dashboards.items()}


def metrics_page() -> str:
    """Return the reference of all metric families."""
    types = re.sub(r"(?!or\b)\b\w+", r"`\g<0>`", TYPE_LABELS)
    parts = [_HEAD.replace("{types}", types).rstrip()]
    titles = list(_TITLES)
    listed = [family for family in families() if family.name.startswith(tuple(titles))]
    ordered = sorted(listed, key=lambda family: titles.index(_prefix(family)))
    for prefix, group in groupby(ordered, key=_prefix):
        parts.extend(["", f"## {_TITLES[prefix]}", "", *map(_line, group)])
    return "\n".join(parts) + "\n"


def runbook_files() -> dict[Path, str]:
    """Return the runbooks with the defaults that thresholds have now."""
    return {path: with_defaults(path.read_text(encoding="utf-8"), path.stem) for path in sorted(RUNBOOKS.glob("*.md"))}


def connector_pages() -> dict[Path, str]:
    """Return the pages that name Spark's Kafka connector, with its newest version, and list columns of requests."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    texts = {path: _with_columns(text) for path, text in texts.items() if _CONNECTOR.search(text)}
    return {path: _CONNECTOR.sub(CONNECTOR, text) for path, text in texts.items()}


def _with_columns(text: str) -> str:
    """Return a page with the columns of requests that it lists."""
    lines = [f"- `{column.name}`: {(column.metadata or {})[b'description'].decode()}\n" for column in REQUESTS]
    return _COLUMNS.sub(lambda match: match[1] + "".join(lines), text)


def dialects_page() -> str:
    """Return the page about agents with a new table of what is tested, from the files that name the versions."""
    text = (DOCS / "start" / "dialects.md").read_text(encoding="utf-8")
    return _TESTED.sub(lambda match: f"{match[1]}\n{newest.table()}\n{match[2]}", text)


def _prefix(family: Family) -> str:
    return next(prefix for prefix in _TITLES if family.name.startswith(prefix))


def _line(family: Family) -> str:
    """Return the line of a family: its name, its labels, its meaning, and its source if that is Kafka's."""
    labels = ", ".join(f"`{label}`" for label in family.labels)
    for short, long in _SHORT.items():
        labels = labels.replace(long, short)
    labels += ", *tags*" if family.open_labels else ""
    meaning = _LABELED.sub("", family.help)
    source = f" [{family.source}]" if family.name.startswith("kafka_") and family.source != _OWN else ""
    return f"- `{family.name}`{labels and f' ({labels})'}: {_escaped(meaning + source)}"


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("*", "\\*")


def main() -> None:
    """Write the pages that differ."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
