"""Releases of Kafka that tests start beside the usual one, and the agents that run with them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from . import provision
from .agents import Agents
from .ports import free_port

OLD_AGENT: Final = "0.16.1"
"""An old jmx_exporter."""


def number_of(version: str) -> tuple[int, ...]:
    """Return a version to compare: `3.7.2` is (3, 7, 2)."""
    return tuple(map(int, version.split(".")))


@dataclass(frozen=True, slots=True)
class ReleaseAgents(Agents):
    """The agents of a node of another release: Jolokia 2, and jmx_exporter twice, the usual version and an old one."""

    old_agent_port: int = field(default_factory=free_port)

    @property
    def old_agent(self) -> str:
        """URL of the text of an old jmx_exporter with the rules of `quotascope rules jmx-exporter`."""
        return f"http://127.0.0.1:{self.old_agent_port}/metrics"

    def text_agents(self) -> dict[str, str]:
        """
        URL by name of the agents with Prometheus text.

        One has the rules of `jmx_exporter.yml`, the old one our rules.
        """
        return {"kafka_2_0_0": self.jmx_exporter, OLD_AGENT: self.old_agent}

    def properties(self) -> dict[str, str]:
        """Return no reporter: Strimzi's is for newer releases."""
        return {}

    def jvm_option(self, folder: Path) -> str:
        """Return the option that loads all agents."""
        option = Agents.jvm_option(self, folder)
        jolokia2, _, jmx_exporter, own_rules, _ = (folder / "agents").read_text().splitlines()
        rules = own_rules.rpartition(":")[2]
        old = f"{provision.jmx_exporter(OLD_AGENT)}=127.0.0.1:{self.old_agent_port}:{rules}"
        (folder / "agents").write_text(f"{jolokia2}\n{jmx_exporter}\n{old}")
        return option
