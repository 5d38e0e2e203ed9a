"""Checks the pages of an agent: Kafka's MBeans go through its rules, and the page through the reader of such pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isclose
from typing import Final

import yaml

from quotascope.metrics import catalog
from quotascope.metrics.kafka.jmx import unquote_tag_value

from ..coverage import EntityKind
from ..errors import ConfigError, SourceUnreadable
from ..mapping import Attribute, Bean, Meaning
from ..rules import NAMES, Name, rule_of
from ..sources.prometheus_text import TextReader
from .beans import other_readings, readings
from .collector import Outcome, Reading, outcome_of, page_of, repeated
from .configuration import AgentConfig, configurations

_NAMES: Final = {
    Meaning.USAGE: "usage",
    Meaning.THROTTLE_TIME: "throttle time",
    Meaning.TOKENS: "tokens",
    Meaning.DELAY_QUEUE_SIZE: "delay queue",
    catalog.EXEMPT_REQUEST_THREADS: "request time that no quota limits",
    catalog.THROTTLING_ERRORS: "requests refused by a quota",
    Meaning.ACTIVE_CONTROLLER: "active controller",
    Meaning.STARTED_AT: "node id",
    Meaning.CONTROLLER_EVENT_MEAN: "waits of the controller's events (mean)",
    Meaning.CONTROLLER_EVENT_COUNT: "waits of the controller's events (count)",
    catalog.BROKER_CONNECTIONS_PER_SECOND: "new connections of the broker",
    catalog.LISTENER_CONNECTIONS_PER_SECOND: "new connections by listener",
    catalog.LISTENER_CONNECTION_THROTTLE_SECONDS: "throttle time of new connections by listener",
    catalog.IP_CONNECTIONS_PER_SECOND: "new connections by IP address",
    catalog.IP_CONNECTION_THROTTLE_SECONDS: "throttle time of new connections by IP address",
    catalog.REPLICATION_BYTES_PER_SECOND: "replication",
    catalog.REMOTE_STORAGE_BYTES_PER_SECOND: "tiered storage",
    catalog.REMOTE_STORAGE_THROTTLE_SECONDS: "throttle time of tiered storage",
}
_REMOVED: Final = (
    "excludeObjectNames",
    "blacklistObjectNames",
    "includeObjectNameAttributes",
    "excludeObjectNameAttributes",
)
"""Options that leave beans out whatever the rules are."""
KINDS: Final = {EntityKind.USER: "users", EntityKind.CLIENT_ID: "client-ids", EntityKind.PAIR: "users with client-ids"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A number of the node or of an entity, and whether the page shows it."""

    name: str
    """Quota type and number, such as ``produce usage``."""
    kind: EntityKind | None
    """The kind of entity that the number is about; None for a number of the node."""
    is_shown: bool
    unusual: bool = True
    """True if names with unusual characters are shown as well."""
    reason: str = ""
    """Why it is not shown."""
    example: str = ""
    """A bean that shows ``reason``, and what the agent makes of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The outcome for one configuration."""

    place: str
    """Place in its file; empty for the file itself."""
    dialect: str
    """The dialect in which its pages are read."""
    facts: tuple[Fact, ...]
    refused: str = ""
    """Why a page would be refused as a whole."""
    remarks: tuple[str, ...] = ()
    additions: str = ""
    """YAML of rules that show all missing attributes; empty when nothing is missing."""
    object_names: tuple[str, ...] = ()
    """The names to add to ``includeObjectNames``."""
    wrongly_excluded: tuple[str, ...] = ()
    """The names to remove from ``excludeObjectNames``."""

    @property
    def complete(self) -> bool:
        """Return whether the page shows every number, also under unusual names."""
        return not self.refused and all(fact.is_shown and fact.unusual for fact in self.facts)


def check(config: AgentConfig) -> Checked:
    """
    Return the numbers that a configuration of an agent shows, and what to change in it to show all.

    Raises ``ConfigError`` when scrapes with it fail.
    """
    try:
        run = _run(config)
    except ConfigError as error:
        place = f"{config.place}: " if config.place else ""
        raise ConfigError(config.file, [f"{place}{error.subject}: {problem}" for problem in error.problems]) from None
    missing = run.missing
    additions, object_names = _additions(config, missing) if missing else ("", ())
    remarks = [*config.remarks]
    if run.repeated:
        remarks.append(
            "where several beans become one series, agents from 1.0 tell them apart by a label _objectname, while "
            "there are several; "
            "pages of older ones hold one series with several values, and are refused"
        )
    return Checked(
        place=config.place,
        dialect=run.dialect,
        facts=tuple(run.facts()),
        refused=run.refused,
        remarks=tuple(remarks),
        additions=additions,
        object_names=object_names,
        wrongly_excluded=_wrongly_excluded(config, missing),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A page, and the series that the reader found on it."""

    outcomes: Sequence[tuple[Attribute, EntityKind | None, bool, Reading, Outcome]]
    values: Mapping[tuple[Bean, str], float]
    dialect: str
    refused: str
    repeated: frozenset[str]
    """Series that stand for several beans."""

    def shows(self, reading: Reading, outcome: Outcome) -> bool:
        """Return whether the page shows the number of a bean, also when other beans exist."""
        value = self._value(reading)
        is_equal = value is not None and isinstance(reading.value, float) and isclose(value, reading.value)
        return is_equal and outcome.series not in self.repeated

    @property
    def missing(self) -> list[Attribute]:
        """Return the attributes that have a reading which the page does not show."""
        unshown = {
            id(attribute): attribute
            for attribute, _, _, reading, outcome in self.outcomes
            if not self.shows(reading, outcome)
        }
        return list(unshown.values())

    def facts(self) -> Iterator[Fact]:
        """Yield whether the page shows each attribute, for each kind of entity that has it."""
        groups: dict[tuple[int, EntityKind | None], list[tuple[bool, Reading, Outcome]]] = {}
        attributes: dict[int, Attribute] = {}
        for attribute, kind, unusual, reading, outcome in self.outcomes:
            attributes[id(attribute)] = attribute
            groups.setdefault((id(attribute), kind), []).append((unusual, reading, outcome))
        for (identity, kind), members in groups.items():
            failed = [
                (unusual, reading, outcome) for unusual, reading, outcome in members if not self.shows(reading, outcome)
            ]
            failed_with_ordinary_names = [member for member in failed if not member[0]]
            reason = example = ""
            if failed:
                _, reading, outcome = (failed_with_ordinary_names or failed)[0]
                reason, example = self._reason(reading, outcome)
            yield Fact(
                name=named(attributes[identity]),
                kind=kind,
                is_shown=not failed_with_ordinary_names,
                unusual=not failed,
                reason=reason,
                example=example,
            )

    def _reason(self, reading: Reading, outcome: Outcome) -> tuple[str, str]:
        """Return the reason why a reading is not shown, and the reading with the series that the agent makes of it."""
        if outcome.rule is None:
            return outcome.reason, reading.text
        if outcome.reason:
            return f"{outcome.rule.shown} takes it: {outcome.reason}", reading.text
        example = f"{reading.text} becomes {outcome.series}"
        if outcome.series in self.repeated:
            return f"{outcome.rule.shown} makes one series of several beans", example
        value = self._value(reading)
        if value is not None:
            return (
                f"{outcome.rule.shown} changes its number",
                f"{example}, read as {value:g} instead of {reading.value:g}",
            )
        return f"{outcome.rule.shown} makes lines of it that cannot be read", example

    def _value(self, reading: Reading) -> float | None:
        """Return the number that the reader found for a bean; None if it found none."""
        properties = {key: unquote_tag_value(value) for key, value in reading.properties}
        return self.values.get((Bean.of(reading.domain, properties), reading.attribute))


def _run(config: AgentConfig) -> _Run:
    """Return what the rules of a configuration make of all readings, and what the reader finds on that page."""
    outcomes = [
        (attribute, kind, unusual, reading, outcome_of(config, reading))
        for attribute, kind, unusual, reading in readings()
    ]
    lines = [outcome for *_, outcome in outcomes] + [outcome_of(config, reading) for reading in other_readings()]
    reader = TextReader()
    refused, values = "", {}
    try:
        page = reader.read(page_of(lines).encode())
    except SourceUnreadable as error:
        refused = str(error)
    else:
        columns = zip(page.layout.columns, page.values, strict=True)
        values = {(column.bean, column.attribute): value for column, value in columns}
    return _Run(
        outcomes=outcomes,
        values=values,
        dialect=reader.dialect,
        refused=refused,
        repeated=repeated(lines),
    )


def named(attribute: Attribute) -> str:
    """Return the name of a fact."""
    name = _NAMES[attribute.meaning]
    if attribute.quota_type is not None:
        return f"{attribute.quota_type.label.replace('_', ' ')} {name}"
    return f"{name} ({attribute.part.replace('_', ' ')})" if attribute.part else name


def _additions(config: AgentConfig, missing: Sequence[Attribute]) -> tuple[str, tuple[str, ...]]:
    """Return rules of `quotascope rules jmx-exporter` for missing attributes, and the object names that they need."""
    attributes = {id(attribute): attribute for attribute in missing}
    # the added rules may hide attributes that the agent's own rules show: these need added rules as well
    while True:
        names = [name for name in NAMES if id(name.attribute) in attributes]
        text = _yaml(names)
        patterns = tuple(dict.fromkeys(name.attribute.pattern for name in names))
        newly_missing = [
            attribute
            for attribute in _run(_with_rules(config, text, patterns)).missing
            if id(attribute) not in attributes
        ]
        if not newly_missing:
            break
        attributes.update((id(attribute), attribute) for attribute in newly_missing)
    needed = patterns if config.included is not None else ()
    return text, needed


def _wrongly_excluded(config: AgentConfig, missing: Sequence[Attribute]) -> tuple[str, ...]:
    """Return the excluded object names that match a bean with a missing attribute."""
    missing_ids = {id(attribute) for attribute in missing}
    beans = [reading for attribute, _, _, reading in readings() if id(attribute) in missing_ids]
    return tuple(
        name.text
        for name in config.excluded
        if any(name.matches(reading.domain, dict(reading.properties)) for reading in beans)
    )


def _with_rules(config: AgentConfig, text: str, patterns: Sequence[str]) -> AgentConfig:
    """
    Return a configuration that has the rules of a YAML text before its own, and leaves no bean out.

    If it lists the object names to include, it includes ``patterns`` as well.
    """
    document = dict(config.document)
    added_rules: object = yaml.safe_load(text)
    own_rules = document.get("rules", [{}])
    rule_lists = (rules for rules in (added_rules, own_rules) if isinstance(rules, list))
    document["rules"] = [*chain.from_iterable(rule_lists)]
    for key in ("includeObjectNames", "whitelistObjectNames"):
        names = document.get(key)
        if isinstance(names, list):
            document[key] = [*names, *patterns]
    for key in _REMOVED:
        document.pop(key, None)
    (changed,) = configurations(yaml.safe_dump(document), config.file)
    return changed


def _yaml(names: Sequence[Name]) -> str:
    """Return the rules for these names as YAML."""
    return yaml.safe_dump([rule_of(name) for name in names], sort_keys=False, width=10_000, allow_unicode=True)
