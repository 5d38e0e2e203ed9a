"""The configuration of discovery: where brokers and controllers are found, and how those found are read."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from .section import Seconds, Section, comma_separated
from .source import AccessConfig, Dialect, DialectConfig, http_url

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}", re.ASCII)
_VOTER: Final = re.compile(
    r"(\d{1,10})@(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII
)


def _template(text: str, *names: str) -> str:
    used = set(_PLACEHOLDER.findall(text))
    unknown = sorted(used - set(names))
    allowed = ", ".join(f"{{{name}}}" for name in names)
    if unknown or set("{}") & set(_PLACEHOLDER.sub("", text)):
        raise ValueError(f"may hold {allowed}, and no other braces")
    http_url(_PLACEHOLDER.sub("1", text))
    return text


def _node_template(text: str) -> str:
    checked = _template(text, "host", "node_id", "rack")
    if not {"host", "node_id"} & set(_PLACEHOLDER.findall(text)):
        raise ValueError("must hold {host} or {node_id}: else all nodes have one URL")
    return checked


def _target_template(text: str) -> str:
    checked = _template(text, "target", "host", "port")
    if not {"target", "host"} & set(_PLACEHOLDER.findall(text)):
        raise ValueError("must hold {target} or {host}: else all nodes have one URL")
    return checked


def _controller(text: str) -> str:
    if not _VOTER.fullmatch(text):
        raise ValueError("expected NODE_ID@HOST, such as 100@controller-1")
    return text


NodeTemplate = Annotated[str, AfterValidator(_node_template)]
TargetTemplate = Annotated[str, AfterValidator(_target_template)]
Controller = Annotated[str, AfterValidator(_controller)]


class FoundSourceConfig(AccessConfig, DialectConfig):
    """What all found sources share."""

    dialect: Dialect = Field(
        default=Dialect.AUTO, description="As `dialect` of a source."
    )


class KafkaDiscoveryConfig(Section):
    """Brokers and controllers as the cluster itself tells them."""

    url: NodeTemplate = Field(
        description="Where a node's agent answers. {host}, {node_id} and {rack} are replaced by what the cluster says of the node.",
        examples=["http://{host}:8778/jolokia"],
    )
    controller_url: NodeTemplate | None = Field(
        default=None,
        description="The same for nodes that are only controllers; {rack} is not known of them. Default: url.",
        examples=["http://{host}:8779/jolokia"],
    )
    controllers: Annotated[tuple[Controller, ...], BeforeValidator(comma_separated)] = (
        Field(
            default=(),
            description="Controllers as NODE_ID@HOST, for clusters older than Kafka 3.9, which do not tell where theirs are. The value of controller.quorum.voters will do.",
            examples=[["100@controller-1", "101@controller-2"]],
        )
    )
    refresh_interval_seconds: Seconds = Field(
        default=30.0, description="How often the cluster is asked."
    )


class FileDiscoveryConfig(Section):
    """Nodes from files as Prometheus's file_sd_configs reads them."""

    files: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        min_length=1,
        description="JSON (*.json) or YAML files; * stands for any name.",
        examples=[["/etc/prometheus/kafka/*.json"]],
    )
    url: TargetTemplate = Field(
        default="http://{target}/jolokia",
        description="Where a target's agent answers: {target} is replaced by HOST:PORT from the file, {host} and {port} by its parts. The file's own __scheme__ and __metrics_path__ are not used.",
    )
    match: dict[str, str] = Field(
        default_factory=dict,
        description="Only groups with these labels are taken. Default: all.",
        examples=[{"job": "kafka"}],
    )
    node_id_label: str = Field(
        default="node_id",
        min_length=1,
        description="The label that holds Kafka's node.id, where there is one.",
    )
    refresh_interval_seconds: Seconds = Field(
        default=5.0, description="How often the files are looked at."
    )


class DiscoveryConfig(Section):
    """Where brokers and controllers are found."""

    kafka: KafkaDiscoveryConfig | None = Field(
        default=None,
        description="All brokers and controllers of the cluster under `kafka`, those that are down as well.",
    )
    file_sd: FileDiscoveryConfig | None = Field(
        default=None,
        description="Targets from files. Whoever can write them decides where the requests of `source` go, with its credentials.",
    )
    source: FoundSourceConfig = Field(
        default=FoundSourceConfig(), description="How the found ones are read."
    )

    @property
    def wanted(self) -> bool:
        """Whether anything is to be found."""
        return self.kafka is not None or self.file_sd is not None
