"""The commands: each has a file, or a folder, of its name here, which is imported when the command is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, cast

import typer
from typer.core import TyperCommand, TyperGroup

from .app import App

# metrics first: the request log is off on most brokers, and some clusters cannot switch it on
PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "From metrics of brokers' agents, of a Prometheus, or of a running exporter": {
        "serve": "Read the brokers and serve their quotas to Prometheus, until SIGTERM or Ctrl-C.",
        "status": "Read the brokers once, or a running exporter.",
        "top": "Show the entities that are throttled or closest to their limits, and refresh them.",
        "doctor": (
            "Try everything in a configuration once: agents, Kafka, permissions, clocks, certificates; print "
            "what to do."
        ),
        "shadow": "Evaluate limits on live traffic before they are set.",
        "mcp": "Answer an assistant about a running exporter, by the Model Context Protocol.",
        "demo": "Watch made-up clients hit real quotas: needs no Kafka.",
    },
    "Quotas, through the Admin API": {
        "explain": "Show the eight levels at which a quota can be set, which are set, and which applies.",
        "quotas": "Quotas: list them with their usage, set and remove them, keep them in a file.",
    },
    "Of the past: from a Prometheus, or from request logs": {
        "recommend": (
            "Find the lowest limit per entity that would have throttled it at most a given share of the time."
        ),
        "usage": (
            "Show who used how much of which quota over a period: from a usage history, with topics, or from a "
            "Prometheus."
        ),
        "cost": (
            "Add up what teams owe for the bytes of a month, from usage histories or a Prometheus; as CSV with "
            "FOCUS's columns."
        ),
        "episodes": (
            "Show when a client was throttled, by which rule, and for how long: from a history, an exporter, or "
            "a Prometheus."
        ),
        "ingest-prometheus": (
            "Copy each sample of clients from a Prometheus into a table, which --samples of other commands reads."
        ),
    },
    "From request logs, where brokers write them": {
        "ingest": "Read request logs of Kafka brokers (kafka.request.logger) into a folder of usage history.",
        "whatif": "Replay usage history under quotas that are not set, with Kafka's own algorithms.",
        "blame": (
            "Divide each request's queue time among the requests that held the broker's handler threads meanwhile."
        ),
        "history": "Usage history on disk: what there is, merging small files, dropping old days, repair.",
        "request-topic": "Create the topic to which brokers' request logs are shipped, unless it exists.",
    },
    "Spark jobs": {
        "spark": "Spark jobs: their throttle times, and the files that jobs need to report them.",
    },
    "Files for the exporter, its agents, Prometheus and Grafana": {
        "config": "Check a configuration, or print the reference.",
        "rules": "Write and check rules for the agents of brokers.",
        "alerts": "Write alerts, recording rules and runbooks for Prometheus, or print their configuration.",
        "dashboards": "Grafana dashboards: write them to files, or push them to a Grafana.",
        "teams": "Check the file of teams (documentation: Teams).",
    },
}
"""Names of commands, with the first sentence of each one's help, by the title of the panel in the help."""
NAMES: Final = tuple(name for commands in PANELS.values() for name in commands)


Command = TyperCommand | TyperGroup


class Commands(Mapping[str, Command]):
    """The commands by name, in the order of the help; each is made when it is looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        """Return a command. Raises ``KeyError`` for another name."""
        if name not in self._loaded:
            if name not in NAMES:
                raise KeyError(name)
            self._loaded[name] = _command(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


def _command(name: str) -> Command:
    """Return the command or group that a file declares: the function, or the ``typer.Typer``, with the file's name."""
    attribute = name.replace("-", "_")
    module = import_module(f".{attribute}", __package__)
    declared = getattr(module, attribute)
    if isinstance(declared, typer.Typer):
        return typer.main.get_group(declared)
    alone = App(name, "", add_completion=False)
    alone.command(name, epilog=module.EXAMPLES)(declared)
    return cast("TyperCommand", typer.main.get_command(alone))
