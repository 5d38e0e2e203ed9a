"""
The metrics agents of a node.

Jolokia 2, Jolokia 1 behind TLS and a password, jmx_exporter with several rules, and Strimzi's reporter, all in one JVM.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quotascope.exporter.rules import jmx_exporter_rules

from . import provision
from .certificates import Certificates
from .ports import free_port

RULES: Final = Path(__file__).parent / "jmx_exporter.yml"
CONFLUENT_RULES: Final = Path(__file__).parent / "confluent.yml"
JOLOKIA1_USER: Final = "reader"
JOLOKIA1_PASSWORD: Final = "reader-pw"
_OTHER_RULES: Final = "other-rules.yml"


@dataclass(frozen=True, slots=True)
class Agents:
    """The ports of a node's agents, which stay the same when the node restarts."""

    certificates: Certificates
    jolokia2_port: int = field(default_factory=free_port)
    jolokia1_port: int = field(default_factory=free_port)
    jmx_exporter_port: int = field(default_factory=free_port)
    own_rules_port: int = field(default_factory=free_port)
    other_rules_port: int = field(default_factory=free_port)
    strimzi_port: int = field(default_factory=free_port)

    @property
    def jolokia(self) -> str:
        """URL of Jolokia 2: plain HTTP, no password."""
        return f"http://127.0.0.1:{self.jolokia2_port}/jolokia/"

    @property
    def jolokia1(self) -> str:
        """URL of Jolokia 1: HTTPS by the test authority, basic authentication as `JOLOKIA1_USER`."""
        return f"https://127.0.0.1:{self.jolokia1_port}/jolokia/"

    @property
    def jmx_exporter(self) -> str:
        """URL of jmx_exporter's text with the rules of `jmx_exporter.yml`."""
        return f"http://127.0.0.1:{self.jmx_exporter_port}/metrics"

    @property
    def own_rules(self) -> str:
        """URL of jmx_exporter's text with the rules of `quotascope rules jmx-exporter`."""
        return f"http://127.0.0.1:{self.own_rules_port}/metrics"

    @property
    def other_rules(self) -> str:
        """URL of jmx_exporter's text with Confluent's rules, or with the last rules that `use_rules` set."""
        return f"http://127.0.0.1:{self.other_rules_port}/metrics"

    @property
    def strimzi(self) -> str:
        """URL of the text of Strimzi's metrics-reporter."""
        return f"http://127.0.0.1:{self.strimzi_port}/metrics"

    def properties(self) -> dict[str, str]:
        """Return the settings of the node's reporters."""
        kafka = "io.strimzi.kafka.metrics.KafkaPrometheusMetricsReporter"
        return {
            "metric.reporters": f"org.apache.kafka.common.metrics.JmxReporter,{kafka}",
            "kafka.metrics.reporters": "io.strimzi.kafka.metrics.YammerPrometheusMetricsReporter",
            "prometheus.metrics.reporter.listener": f"http://127.0.0.1:{self.strimzi_port}",
        }

    def use_rules(self, folder: Path, rules: str) -> None:
        """Give the agent at `other_rules` other rules; it looks at its file with every scrape."""
        # in one step: a scrape that read an empty file, of the same millisecond, would keep the agent at no rules for
        # good
        written = folder / f"{_OTHER_RULES}.new"
        written.write_text(rules)
        written.replace(folder / _OTHER_RULES)

    def jvm_option(self, folder: Path) -> str:
        """Return the option that loads all agents; their arguments are written to a file in `folder`."""
        jars = provision.agents()
        tls = (
            f"protocol=https,serverCert={self.certificates.server},serverKey={self.certificates.server_key},"
            "serverKeyAlgorithm=EC"
        )
        password = f"user={JOLOKIA1_USER},password={JOLOKIA1_PASSWORD}"
        own_rules = folder / "quotascope.yml"
        own_rules.write_text(jmx_exporter_rules())
        self.use_rules(folder, CONFLUENT_RULES.read_text())
        lines = [
            f"{jars}/jolokia2.jar=host=127.0.0.1,port={self.jolokia2_port},agentContext=/jolokia",
            f"{jars}/jolokia1.jar=host=127.0.0.1,port={self.jolokia1_port},agentContext=/jolokia,{tls},{password}",
            f"{jars}/jmx_exporter.jar=127.0.0.1:{self.jmx_exporter_port}:{RULES}",
            f"{jars}/jmx_exporter.jar=127.0.0.1:{self.own_rules_port}:{own_rules}",
            f"{jars}/jmx_exporter.jar=127.0.0.1:{self.other_rules_port}:{folder / _OTHER_RULES}",
        ]
        (folder / "agents").write_text("\n".join(lines))
        return f"-javaagent:{jars}/agent-loader.jar={folder}/agents"
