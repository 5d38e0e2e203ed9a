"""
Behavior of a release's broker, and our view of it: one scene for each release, shared by many tests.

A scene starts brokers with ZooKeeper or KRaft, lets the clients of `tests/cluster/throttled.py` run into quotas of all
kinds, reads the exporter beside the brokers' own numbers meanwhile, and keeps the request logs. Only one runs at a
time, and none is left when it ends.
"""

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.cluster.cluster import Cluster, Layout, Plugin, running
from tests.cluster.every_version import send_every_version
from tests.cluster.node import Node
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.releases import ReleaseAgents
from tests.cluster.throttled import RULES, record_all
from tests.commands import run
from tests.integration import agent
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.page import Page

from quotascope.clients import open_quota_admin
from quotascope.metrics.kafka.release import ReleaseRange

SECONDS: Final = 20.0
"""Seconds for which clients run into quotas."""
_PAUSE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release that is tested, and how its brokers are started."""

    version: str
    layout: Layout = Layout.COMBINED
    in_the_gate: bool = False
    """True if `make test` runs it; the others are for `make kafka-matrix`."""
    explains_only: bool = False
    """True if only the Admin API is asked, without any load."""

    @property
    def zookeeper(self) -> bool:
        """True if a ZooKeeper keeps the metadata."""
        return not self.layout.value[1]

    @property
    def name(self) -> str:
        """The release as quotascope names it."""
        short = self.version.rpartition(".")[0]
        return f"{short} in ZooKeeper mode" if self.zookeeper else short

    def __str__(self) -> str:
        return f"{self.version}-zookeeper" if self.zookeeper else self.version


RELEASES: Final = (
    Release(version="2.8.2", layout=Layout.ZOOKEEPER, in_the_gate=True),
    Release(version="3.3.2"),
    Release(version="3.4.1", in_the_gate=True, explains_only=True),
    Release(version="3.6.2"),
    Release(version="3.7.2", in_the_gate=True),
    Release(version="3.8.1"),
    Release(version="3.9.1", layout=Layout.ZOOKEEPER_PAIR, in_the_gate=True),
    Release(version="4.0.1"),
    Release(version="4.1.2", in_the_gate=True),
    Release(version="4.2.2"),
    Release(version="4.3.1"),
    Release(version="4.4.0"),
)
"""All releases that are tested; 4.3.1 and 4.4.0 are those that every other test of a broker starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Page of the exporter, between two direct reads of each broker."""

    before: Mapping[str, Mapping[agent.Key, float | None]]
    """Reads before the page, by node id."""
    page: Page
    after: Mapping[str, Mapping[agent.Key, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All results that the tests of a release use."""

    release: Release
    rules: tuple[Rule, ...] = RULES
    moments: list[Moment] = field(default_factory=list)
    """One a second, under load."""
    agents: Mapping[str, list[Page]] = field(default_factory=dict)
    """Pages by agent: those of an exporter that reads it instead of Jolokia, under load."""
    logs: Sequence[bytes] = ()
    """Logs of each broker under load."""
    rules_yaml: str = ""
    every_version: bytes = b""
    """The log of a broker that answered each version of the APIs that are read."""
    answered: Mapping[str, list[int]] = field(default_factory=dict)
    releases: Mapping[int, ReleaseRange | Exception] = field(default_factory=dict)
    """Releases by broker."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """Standard output of commands, as JSON where they have it."""
    codes: Mapping[str, int] = field(default_factory=dict)


def observe(release: Release, folder: Path) -> Observed:
    """Start the brokers of a release, and end them when all is observed."""
    plugin = Plugin(version=release.version, logs_requests=True)
    with running(release.layout, folder / "kafka", plugin=plugin) as cluster:
        if release.explains_only:
            with closing(Quotas(cluster.connection())) as quotas:
                quotas.set(*RULES)
                return _asked(release, cluster, folder)
        return _under_load(release, cluster, folder)


def _under_load(release: Release, cluster: Cluster, folder: Path) -> Observed:
    settings = settings_for(cluster.brokers, cluster.admin)
    moments: list[Moment] = []
    with serving(folder / "serve", settings) as exporter, ThreadPoolExecutor(1) as pool:
        by_agent = _of_agents(cluster, folder)
        recording = pool.submit(record_all, cluster, RULES, SECONDS)
        try:
            while not recording.done():
                moments.append(_moment(cluster.brokers, exporter))
                for pages, agent_exporter in by_agent.values():
                    pages.append(agent_exporter.page())
                time.sleep(_PAUSE)
        finally:
            for _, agent_exporter in by_agent.values():
                agent_exporter.child.end()
        recordings = recording.result()
    with closing(Quotas(cluster.connection())) as quotas:
        quotas.set(*RULES)
        without_load = _asked(release, cluster, folder)
        quotas.clear()
    log = cluster.brokers[0].request_log
    start = log.stat().st_size
    answered = send_every_version(cluster)
    return Observed(
        release=release,
        moments=moments,
        agents={name: pages for name, (pages, _) in by_agent.items()},
        logs=[recording.log for recording in recordings],
        rules_yaml=recordings[0].rules_yaml(),
        every_version=log.read_bytes()[start:],
        answered=answered,
        releases=without_load.releases,
        answers=without_load.answers,
        codes=without_load.codes,
    )


def _of_agents(cluster: Cluster, folder: Path) -> dict[str, tuple[list[Page], Exporter]]:
    """Return an exporter for each further agent of the first broker, and the list of its pages."""
    agents = cluster.brokers[0].agents
    assert isinstance(agents, ReleaseAgents)
    exporters = {}
    for name, url in agents.text_agents().items():
        settings = settings_for(cluster.brokers[:1], cluster.admin)
        node_id = cluster.brokers[0].node_id
        settings["sources"] = [{"dialect": "jmx_exporter", "url": url, "node_id": node_id, "name": "other"}]
        exporter = Exporter(folder / f"serve-{name}", settings)
        exporter.wait_until_ready()
        exporters[name] = (list[Page](), exporter)
    return exporters


def _moment(nodes: Sequence[Node], exporter: Exporter) -> Moment:
    def read() -> dict[str, Mapping[agent.Key, float | None]]:
        return {str(node.node_id): agent.quota_numbers(node.agents.jolokia) for node in nodes}

    reads_before = read()
    page = exporter.page()
    return Moment(before=reads_before, page=page, after=read())


def _asked(release: Release, cluster: Cluster, folder: Path) -> Observed:
    """Return the outputs of the commands for a cluster with `RULES`."""
    config = folder / "asked.yaml"
    settings = settings_for(cluster.brokers, cluster.admin)
    config.write_text(json.dumps(settings))
    commands = {
        "doctor": ("doctor", "--json"),
        "status": ("status",),
        "explain": ("explain", "--user", "bob", "--client-id", "topic-admin"),
        "explain --json": ("explain", "--user", "bob", "--client-id", "topic-admin", "--json"),
        "quotas list": ("quotas", "list"),
        "quotas set": ("quotas", "set", "controller_mutation_rate=3", "--user", "bob"),
    }
    processes = {name: run(*words, "--config", config) for name, words in commands.items()}
    with closing(open_quota_admin(cluster.connection())) as admin:
        nodes = [node.node_id for node in cluster.brokers]
        releases = admin.describe_releases(nodes, 10.0)
    return Observed(
        release=release,
        releases=releases,
        answers={
            name: json.loads(process.stdout)
            if "--json" in process.args and process.stdout
            else process.stdout + process.stderr
            for name, process in processes.items()
        },
        codes={name: process.returncode for name, process in processes.items()},
    )
