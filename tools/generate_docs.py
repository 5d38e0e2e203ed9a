"""
Writes what is generated: pages in ``docs/``, ``alerts/generated/`` and ``dashboards/generated/``.

``make docs`` runs it; ``tests/test_docs.py`` and ``tests/dashboards/test_generated.py`` fail when a page differs from what it would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from quotascope.alerts import Site
from quotascope.alerts.alertmanager_file import alertmanager_file
from quotascope.alerts.page import alerts_page
from quotascope.alerts.prometheus_files import operator_file
from quotascope.alerts.write import rule_files
from quotascope.dashboards.files import file_text, grafana_dashboards
from quotascope.dashboards.scope import Scope
from quotascope.exporter.config.reference import reference
from quotascope.metrics.catalog import Family, families

DOCS = Path(__file__).parents[1] / "docs"
ALERTS = DOCS.parent / "alerts" / "generated"
DASHBOARDS = DOCS.parent / "dashboards" / "generated"
_HEAD = """\
# Metrics

Every family that `quotascope serve` exposes. This page is written from `metrics/catalog/` by `make docs`; do not edit it.

- Base units: seconds, bytes, ratios. Request time is counted in **threads**: 1 is one thread busy all the time, Kafka's 100 percent.
- No NaN and no timestamps: what a broker does not tell is absent.
- `user` and `client_id` are decoded names; a dimension that the quota does not have is the empty string.
- `broker` is the node id, of a controller too. Limits have no `broker`: each broker applies them by itself, so utilisation is per broker.
- `quota_type` is `produce`, `fetch`, `request` or `controller_mutation`.
- `level` is the shape of the deciding rule, strongest first: `user_client`, `user_default_client`, `user`, `default_user_client`,
  `default_user_default_client`, `default_user`, `client`, `default_client`. In `rule_user` and `rule_client_id` a default reads `<default>`.
- `direction` is `leader`, `follower` or `alter_log_dirs` of replication, `copy` or `fetch` of the remote storage. The limits beside those of
  clients (connections, replication, remote storage) have a `broker`, for each can have its own. Which agents tell their usage: [dialects](dialects.md).
- *tags* are those of a custom quota callback, a label for each: [callbacks](jmx-exporter.md#custom-quota-callbacks).
- When `cluster` is configured, every series has the label `cluster` as well.
"""
_TITLES = {
    "kafka_quota_": "What Kafka says, and what follows from it",
    "quotascope_": "The exporter itself",
}


def pages() -> dict[Path, str]:
    """The generated pages by path."""
    return {
        DOCS / "metrics.md": metrics_page(),
        DOCS / "configuration.yaml": reference(),
        DOCS / "alerts.md": alerts_page(),
        **{ALERTS / name: text for name, text in rule_files(Site()).items()},
        ALERTS / "alertmanager" / "alertmanager-example.yaml": alertmanager_file(
            Site()
        ),
        ALERTS / "kubernetes" / "quotascope-prometheusrule.yaml": operator_file(Site()),
        **_dashboards(),
    }


def _dashboards() -> dict[Path, str]:
    made = grafana_dashboards(Scope())
    return {DASHBOARDS / f"{uid}.json": file_text(each) for uid, each in made.items()}


def metrics_page() -> str:
    """The reference of all metric families."""
    parts = [_HEAD.rstrip()]
    ordered = sorted(families(), key=_prefix)
    for prefix, group in groupby(ordered, key=_prefix):
        parts.extend(["", f"## {_TITLES[prefix]}", *_table(group)])
    return "\n".join(parts) + "\n"


def _prefix(family: Family) -> str:
    return next(prefix for prefix in _TITLES if family.name.startswith(prefix))


def _table(group: Iterator[Family]) -> Iterator[str]:
    yield ""
    yield "| family | type | unit | labels | meaning | source |"
    yield "|---|---|---|---|---|---|"
    for family in group:
        named = [f"`{label}`" for label in family.labels]
        labels = ", ".join([*named, "*tags*"] if family.open_labels else named)
        cells = [f"`{family.name}`", family.type.value, family.unit, labels]
        row = [*cells, _cell(family.help), _cell(family.source)]
        yield f"| {' | '.join(row)} |"


def _cell(text: str) -> str:
    escaped = text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("*", "\\*")


def main() -> None:
    """Write the pages that differ."""
    for path, text in pages().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
