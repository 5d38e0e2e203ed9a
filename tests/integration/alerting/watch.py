"""Prometheus with our rules, Alertmanager with our example, and who is paged: all as written, but in a hurry."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from tests.alerts.promtool import ALERTMANAGER
from tests.integration.alerting.alertmanager import Alertmanager, Pager, alerting
from tests.integration.alerting.hurry import hurried, hurried_rules
from tests.integration.exporter import Exporter
from tests.integration.prometheus import Prometheus, running
from tests.servers import served

CLUSTER: Final = "paris"
"""Name of the cluster in the scrape configuration."""
TEMPLATES: Final = "quotascope.tmpl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    prometheus: Prometheus
    alertmanager: Alertmanager
    pager: Pager


@contextmanager
def watching(folder: Path, exporter: Exporter, config: Mapping[str, Any] | None = None) -> Iterator[Watch]:
    """Yield all running programs; the alerts are set by `config`."""
    written = folder / "written"
    with ExitStack() as stack:
        pager = stack.enter_context(served(Pager(written)))
        rules = _write(written, pager, exporter, config or {})
        alertmanager = stack.enter_context(alerting(folder / "alertmanager", _to_pager(written, pager)))
        scraped = _config(exporter, alertmanager, rules)
        prometheus = stack.enter_context(running(folder / "prometheus", scraped))
        yield Watch(prometheus=prometheus, alertmanager=alertmanager, pager=pager)


def _write(folder: Path, pager: Pager, exporter: Exporter, config: Mapping[str, Any]) -> list[Path]:
    folder.mkdir(exist_ok=True)
    (folder / "alerts.yaml").write_text(yaml.safe_dump(dict(config)))
    links = ("--exporter-url", exporter.url, "--grafana-url", f"{pager.url}/grafana")
    others = ("--alerts-config", folder / "alerts.yaml", "--alertmanager", folder / TEMPLATES)
    return hurried_rules(folder / "rules", *links, *others)


def _to_pager(folder: Path, pager: Pager) -> Mapping[str, Any]:
    """Return the example with an address for every receiver but the first, which gets what is unrouted."""
    config = yaml.safe_load(ALERTMANAGER.read_text())
    config["templates"] = [str(folder / TEMPLATES)]
    for receiver in config["receivers"]:
        if receiver["name"] != "unrouted":
            receiver["webhook_configs"] = [{"url": pager.url}]
    shortened: dict[str, Any] = hurried(config)
    return shortened


def _config(exporter: Exporter, alertmanager: Alertmanager, rules: list[Path]) -> Mapping[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in rules],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.address]}]}]},
        "scrape_configs": [
            {
                "job_name": "quotascope",
                "static_configs": [{"targets": [exporter.url.removeprefix("http://")], "labels": {"cluster": CLUSTER}}],
            }
        ],
    }
