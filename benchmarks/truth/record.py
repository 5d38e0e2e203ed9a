"""A real broker under loads of several kinds, its request log, and a real Prometheus that scrapes its agents."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.output import STDERR
from tests.cluster.cluster import Cluster, Layout, Plugin, running
from tests.cluster.loads import STEP_S, Sizes, driven
from tests.cluster.quotas import Quotas
from tests.integration.eventually import eventually
from tests.integration.exporter import serving, settings_for
from tests.integration.prometheus import Prometheus
from tests.pipeline.prometheus.loads import LOADS, Load

AGENTS: Final = ("jmx_exporter", "strimzi", "jolokia")
"""Agents of the broker; Jolokia is read by an exporter of ours, which Prometheus scrapes."""
INTERVALS: Final = (5, 10, 15, 30, 60)
"""Scrape intervals in seconds, a job each."""
_SCALE: Final = 0.008
"""Loads of 8 kB/s on average keep a small broker calm."""
_UNLIMITED: Final = 1e9
"""Bytes/s that no load reaches: brokers measure only where a quota is configured."""
_LAST_S: Final = 15.0
"""Seconds after the loads, in which Kafka's rates fall to 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was recorded in a folder; times are Unix times in seconds."""

    folder: Path
    begin: float
    end: float
    seeds: int

    @property
    def log(self) -> Path:
        """The request log of the broker."""
        return self.folder / "requests.log"

    @property
    def data(self) -> Path:
        """The data of Prometheus."""
        return self.folder / "prometheus" / "data"

    @property
    def clients(self) -> list[str]:
        """The client ids."""
        return [client_of(load, seed) for load in LOADS for seed in range(1, self.seeds + 1)]

    def save(self) -> None:
        """Write the times beside the data."""
        values = {**asdict(self), "folder": str(self.folder)}
        (self.folder / "recording.json").write_text(json.dumps(values), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Recording:
        """Return the recording of a folder."""
        values = json.loads((folder / "recording.json").read_text(encoding="utf-8"))
        return cls(**{**values, "folder": folder})


def client_of(load: str, seed: int) -> str:
    """Return the client id of a load."""
    return f"{load} {seed}".replace(" ", "-")


def record(folder: Path, minutes: float, seeds: int) -> Recording:
    """Record loads for some minutes, each of several seeds, all at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with running(Layout.COMBINED, folder / "cluster", plugin=Plugin(logs_requests=True)) as cluster:
        with closing(Quotas(cluster.connection())) as quotas:
            quotas.set(({"client-id": None}, {"producer_byte_rate": _UNLIMITED}))
        with _scraped(cluster, folder):
            begin = time.time()
            with driven(cluster.admin, _clients(seeds)), STDERR.status("loads run") as status:
                while (left_s := begin + 60 * minutes - time.time()) > 0:
                    status.update(f"loads run for another {left_s / 60:.0f} minutes")
                    time.sleep(min(left_s, 10))
            time.sleep(_LAST_S)
            recording = Recording(folder=folder, begin=begin, end=time.time(), seeds=seeds)
        shutil.copy(cluster.brokers[0].request_log, recording.log)
    recording.save()
    shutil.rmtree(folder / "cluster")
    return recording


def _clients(seeds: int) -> dict[str, Sizes]:
    return {
        client_of(name, seed): _sizes(load, 1_000 * place + seed)
        for place, (name, load) in enumerate(LOADS.items())
        for seed in range(1, seeds + 1)
    }


def _sizes(load: Load, seed: int) -> Sizes:
    """Return the sizes of a load's requests; each seed has a phase of its own."""
    chance = random.Random(seed)  # noqa: S311 - a load, no secret
    offset = chance.uniform(0, 60)
    return lambda at: round(load(at + offset, chance) * STEP_S * _SCALE)


@contextmanager
def _scraped(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Scrape each agent at each interval within the block."""
    agents = cluster.brokers[0].agents
    with serving(folder / "exporter", settings_for(cluster.brokers, cluster.admin)) as exporter:
        addresses = {
            "jmx_exporter": agents.jmx_exporter,
            "strimzi": agents.strimzi,
            "jolokia": f"{exporter.url}/metrics",
        }
        jobs = [
            _job(agent, every_s, addresses[agent].removeprefix("http://").removesuffix("/metrics"))
            for agent in AGENTS
            for every_s in INTERVALS
        ]
        config = {"global": {"scrape_timeout": "5s"}, "scrape_configs": jobs}
        prometheus = Prometheus(folder / "prometheus", config)

        def scraped() -> None:
            targets = prometheus.targets()
            assert targets.keys() == {job["job_name"] for job in jobs}
            assert {target["health"] for target in targets.values()} == {"up"}, targets

        try:
            eventually(scraped, seconds=max(INTERVALS) + 30)
            yield
        finally:
            prometheus.child.end()


def job_of(agent: str, every_s: int) -> str:
    """Return the name of a job."""
    return f"{agent}-{every_s}"


def _job(agent: str, every_s: int, address: str) -> dict[str, Any]:
    return {
        "job_name": job_of(agent, every_s),
        "scrape_interval": f"{every_s}s",
        "static_configs": [{"targets": [address], "labels": {"instance": "broker-1:9404"}}],
    }
