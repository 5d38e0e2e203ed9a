"""Configurations of jmx_exporter: files, and those within a ConfigMap or the values of a chart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import yaml

from ..errors import ConfigError
from .java import compiled

_OPTIONS: Final = frozenset(
    [
        "rules",
        "lowercaseOutputName",
        "lowercaseOutputLabelNames",
        "whitelistObjectNames",
        "blacklistObjectNames",
        "includeObjectNames",
        "excludeObjectNames",
        "includeObjectNameAttributes",
        "excludeObjectNameAttributes",
        "autoExcludeObjectNameAttributes",
        "inferCounterTypeFromName",
        "startDelaySeconds",
        "scrapeTimeoutSeconds",
        "hostPort",
        "jmxUrl",
        "username",
        "password",
        "ssl",
        "httpServer",
        "excludeJvmMetrics",
        "metricCustomizers",
        "openTelemetry",
        "collector",
    ]
)
_COMMON_OPTIONS: Final = frozenset({"rules", "username", "password", "ssl"})
"""Options whose names other programs have as well."""
_DEEPEST: Final = 12
"""Levels of a file in which configurations are looked for."""
_RULE_KEYS: Final = frozenset(
    {"pattern", "name", "value", "valueFactor", "labels", "help", "type", "cache", "attrNameSnakeCase"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of ``rules``."""

    number: int
    """Its place in the file, from 1."""
    pattern: re.Pattern[str] | None = None
    text: str = ""
    """The pattern as it stands in the file."""
    name: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    value: str | None = None
    factor: float = 1.0
    type: str = "UNKNOWN"
    cache: bool = False
    snake_case: bool = False

    @property
    def shown(self) -> str:
        """Return the rule as messages name it."""
        return f"rule {self.number} ({self.text or 'without a pattern'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectName:
    """A pattern of MBeans' names (Java: ``ObjectName``)."""

    domain: re.Pattern[str]
    properties: Mapping[str, re.Pattern[str]]
    is_open: bool
    """True if a bean may have further properties."""
    text: str

    def matches(self, domain: str, properties: Mapping[str, str]) -> bool:
        """Return whether the pattern matches a bean, whose property values are as in its name."""
        if not self.domain.fullmatch(domain):
            return False
        if not self.is_open and properties.keys() != self.properties.keys():
            return False
        return all(key in properties and pattern.fullmatch(properties[key]) for key, pattern in self.properties.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The part of a configuration that is about metrics."""

    file: str
    """The name of its file."""
    place: str
    """Place in its file; empty for the file itself."""
    rules: tuple[Rule, ...]
    lowercase_names: bool = False
    lowercase_labels: bool = False
    infer_counters: bool = False
    included: tuple[ObjectName, ...] | None = None
    """The beans that are read; None for all."""
    excluded: tuple[ObjectName, ...] = ()
    included_attributes: tuple[tuple[ObjectName, frozenset[str]], ...] = ()
    excluded_attributes: tuple[tuple[ObjectName, frozenset[str]], ...] = ()
    remarks: tuple[str, ...] = ()
    """Options of the agent that have no effect, or that are ignored here."""
    document: Mapping[str, object] = field(default_factory=dict, repr=False)
    """The configuration as it stands in the file."""

    @property
    def is_about_kafka(self) -> bool:
        """Return whether some rule can match a bean of Kafka's."""
        return any("kafka" in rule.text.lower() or rule.text in {"", ".*", ".+"} for rule in self.rules)


def configurations(text: str, name: str) -> list[AgentConfig]:
    """
    Return the configurations of jmx_exporter in a text: the text itself, or those in a ConfigMap or values of a chart.

    Raises ``ConfigError`` when there is none, or when the agent would not start with it.
    """
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(name, [f"is not YAML: {' '.join(str(error).split())}"]) from None
    if not any(document is not None for document in documents):
        return [_configuration({}, name, "")]
    documents_of_agents: list[tuple[str, Mapping[str, object]]] = []
    for document in documents:
        documents_of_agents += _within(document, "", _DEEPEST)
    if not documents_of_agents:
        problem = "holds no configuration of jmx_exporter: it needs a list `rules`, or one of the agent's other options"
        raise ConfigError(name, [problem])
    problems: list[str] = []
    configs: list[AgentConfig] = []
    for place, document in documents_of_agents:
        try:
            configs.append(_configuration(document, name, place))
        except ConfigError as error:
            problems += [f"{place}: {problem}" if place else problem for problem in error.problems]
    if problems:
        raise ConfigError(name, problems)
    about_kafka = [config for config in configs if config.is_about_kafka]
    return about_kafka if len(configs) > 1 and about_kafka else configs


def _within(node: object, place: str, depth: int) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the configurations in a part of a file, each with its place."""
    if not depth:
        return
    if isinstance(node, Mapping):
        keys = {key for key in node if isinstance(key, str)}
        if _is_configuration(node, keys, top=not place):
            yield place, node
            return
        for key, value in node.items():
            yield from _within(value, f"{place}.{key}" if place else str(key), depth - 1)
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _within(value, f"{place}[{number}]", depth - 1)
    elif (
        isinstance(node, str) and place and "\n" in node and any(f"{key}:" in node for key in ("rules", "ObjectNames"))
    ):  # a whole file as one text, as in a ConfigMap
        try:
            inner: object = yaml.safe_load(node)
        except (yaml.YAMLError, RecursionError, ValueError):
            return
        if isinstance(inner, Mapping):
            yield from _within(inner, place, 1)


def _is_configuration(node: Mapping[object, object], keys: set[str], *, top: bool) -> bool:
    """
    Return whether a mapping is a configuration of jmx_exporter.

    Args:
        node: The mapping.
        keys: Its keys that are texts.
        top: Whether it is a whole file, which needs less evidence.

    """
    has_only_options = keys <= _OPTIONS
    if "rules" in keys:
        rules = node["rules"]
        entries = rules if isinstance(rules, list) else []
        are_rules = all(isinstance(entry, Mapping) and entry.keys() <= _RULE_KEYS for entry in entries)
        if are_rules and (entries or top):
            return True
        if has_only_options and top:
            return True
    options_of_no_other_program = _OPTIONS - _COMMON_OPTIONS
    return has_only_options and bool(keys & options_of_no_other_program)


def _configuration(document: Mapping[str, object], file: str, place: str) -> AgentConfig:
    """Return the configuration in a mapping. Raises ``ConfigError`` when the agent would not start with it."""
    problems: list[str] = []
    rules: list[Rule] = []
    entries = document.get("rules", [{}])
    if not isinstance(entries, list):
        raise ConfigError(place or "rules", ["`rules` must be a list of rules"])
    for number, entry in enumerate(entries, 1):
        try:
            rules.append(_rule(number, entry))
        except ConfigError as error:
            problems += [f"rule {number}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigError(place or "rules", problems)
    remarks = [
        f"the agent has no option {key}: it ignores it"
        for key in document
        if key not in _OPTIONS and isinstance(key, str)
    ]
    if "metricCustomizers" in document:
        remarks.append("metricCustomizers are not looked at")
    included = _names(document, "includeObjectNames", "whitelistObjectNames")
    return AgentConfig(
        file=file,
        place=place,
        rules=tuple(rules),
        lowercase_names=_flag(document, "lowercaseOutputName"),
        lowercase_labels=_flag(document, "lowercaseOutputLabelNames"),
        infer_counters=_flag(document, "inferCounterTypeFromName"),
        included=included,
        excluded=_names(document, "excludeObjectNames", "blacklistObjectNames") or (),
        included_attributes=_attributes(document, "includeObjectNameAttributes"),
        excluded_attributes=_attributes(document, "excludeObjectNameAttributes"),
        remarks=tuple(remarks),
        document=document,
    )


def _rule(number: int, entry: object) -> Rule:
    """Return an entry of ``rules``. Raises ``ConfigError`` when the agent would not start with it."""
    if not isinstance(entry, Mapping):
        raise ConfigError("rule", ["is not a mapping with keys such as pattern and name"])
    texts = {key: entry[key] for key in ("name", "help", "type") if entry.get(key) is not None}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise ConfigError("rule", [f"`{key}` is not a text; put it in quotes"])
    labels = entry.get("labels") or {}
    if not isinstance(labels, Mapping) or not all(
        isinstance(label_text, str) for pair in labels.items() for label_text in pair
    ):
        raise ConfigError(
            "rule", ['`labels` must be texts by label; put numbers and references such as "$1" in quotes']
        )
    if ("labels" in entry or "help" in entry) and "name" not in entry:
        raise ConfigError("rule", ["`labels` and `help` need a `name`"])
    if "name" in entry and "pattern" not in entry:
        raise ConfigError("rule", ["`name` needs a `pattern`"])
    try:
        factor = float(entry.get("valueFactor", 1.0))
    except (TypeError, ValueError):
        raise ConfigError("rule", ["`valueFactor` is not a number"]) from None
    pattern = entry.get("pattern")
    value = entry.get("value")
    return Rule(
        number=number,
        pattern=None if pattern is None else compiled(str(pattern)),
        text="" if pattern is None else str(pattern),
        name=texts.get("name"),
        labels=dict(sorted(labels.items())),
        value=None if value is None else str(value),
        factor=factor,
        type=str(texts.get("type", "UNKNOWN")).replace("UNTYPED", "UNKNOWN"),
        cache=_flag(entry, "cache"),
        snake_case=_flag(entry, "attrNameSnakeCase"),
    )


def _flag(document: Mapping[str, object], key: str) -> bool:
    """Return an option that is true or false; false without it. Raises ``ConfigError`` for another value."""
    value = document.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(key, [f"`{key}` must be true or false"])
    return value


def _names(document: Mapping[str, object], key: str, older: str) -> tuple[ObjectName, ...] | None:
    """Return the names of beans in an option, or else in the option of an older name; None without either."""
    used = key if key in document else older
    if used not in document:
        return None
    names = document[used]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(used, [f'`{used}` must be a list of names such as "kafka.server:*"'])
    return tuple(_object_name(name, used) for name in names)


def _attributes(document: Mapping[str, object], key: str) -> tuple[tuple[ObjectName, frozenset[str]], ...]:
    """Return the names of beans in an option, each with names of attributes."""
    entries = document.get(key) or {}
    if not isinstance(entries, Mapping) or not all(
        isinstance(names_of_attributes, Sequence) for names_of_attributes in entries.values()
    ):
        raise ConfigError(key, [f"`{key}` must be lists of attributes by MBean"])
    return tuple(
        (_object_name(str(name), key), frozenset(map(str, names_of_attributes)))
        for name, names_of_attributes in entries.items()
    )


def _object_name(text: str, key: str) -> ObjectName:
    """Return the pattern of a text such as ``kafka.server:type=Produce,*``; ``key`` is the option that has it."""
    domain, colon, properties = text.partition(":")
    # commas within quotes do not separate properties
    parts = re.findall(r'(?:[^",]|"(?:[^"\\]|\\.)*")+', properties)
    pairs = [part.partition("=") for part in parts if part != "*"]
    if not colon or not parts or not all(name and equals for name, equals, _ in pairs):
        raise ConfigError(key, [f'`{key}`: {text!r} is not the name of MBeans, such as "kafka.server:type=Produce,*"'])
    return ObjectName(
        domain=_glob(domain),
        properties={name: _glob(value) for name, _, value in pairs},
        is_open="*" in parts,
        text=text,
    )


def _glob(text: str) -> re.Pattern[str]:
    """Return the pattern of a text with wildcards: * for any characters, ? for one; a backslash takes their meaning."""
    parts = re.findall(r"\\.|\*|\?|[^\\*?]+", text, re.DOTALL)
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(part, re.escape(part)) for part in parts), re.DOTALL)
