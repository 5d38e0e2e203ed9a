"""
The page that jmx_exporter makes of MBeans under a configuration (``JmxCollector``).

The first rule that matches counts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..errors import ConfigError
from .configuration import AgentConfig, Rule
from .java import expanded

_RESERVED: Final = ("_total", "_created", "_bucket", "_info")
"""Endings that the agent takes from a name; a counter gets the first one back."""
_CACHED: Final = "<cache>"
"""Placeholder for the value where a rule has ``cache``."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One attribute of one MBean."""

    domain: str
    properties: tuple[tuple[str, str], ...]
    """Key properties in the order of the bean's name, with values as they stand there."""
    attribute: str
    value: float | str

    @property
    def text(self) -> str:
        """Return bean and attribute as messages name them."""
        properties = ",".join(f"{key}={value}" for key, value in self.properties)
        return f"{self.domain}:{properties} {self.attribute}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The line that a reading becomes, or the reason why there is none."""

    rule: Rule | None
    """The rule that counts; None when there is none."""
    reason: str = ""
    """Why there is no line; empty when there is one."""
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    value: float = 0.0
    match_name: str = ""

    @property
    def series(self) -> str:
        """Return name and labels as a page has them."""
        inner = ",".join(f'{label}="{_escaped(value)}"' for label, value in self.labels)
        return f"{self.name}{{{inner}}}" if inner else self.name


def outcome_of(config: AgentConfig, reading: Reading) -> Outcome:
    """Return the outcome of a reading in an agent. Raises ``ConfigError`` if the reading makes its scrapes fail."""
    reason = _left_out(config, reading)
    if reason:
        return Outcome(None, reason)
    properties = ", ".join(f"{key}={value}" for key, value in reading.properties)
    bean = f"{reading.domain}<{properties}><>"
    for rule in config.rules:
        attribute = _snake_case(reading.attribute) if rule.snake_case else reading.attribute
        text = f"{bean}{attribute}: {_CACHED if rule.cache else _java_number(reading.value)}"
        match = rule.pattern.fullmatch(text) if rule.pattern else None
        if rule.pattern is not None and match is None:
            continue
        try:
            return _by_rule(config, rule, match, reading, attribute, text)
        except ConfigError as error:
            raise ConfigError(
                f"rule {rule.number}", [f"{problem}; scrapes fail" for problem in error.problems]
            ) from None
    return Outcome(None, "no rule matches")


def _left_out(config: AgentConfig, reading: Reading) -> str:
    """Return the option that leaves a bean or attribute out, or an empty text if no option does."""
    properties = dict(reading.properties)
    is_included = config.included is None or any(
        object_name.matches(reading.domain, properties) for object_name in config.included
    )
    if not is_included:
        return "includeObjectNames does not name the bean"
    for object_name in config.excluded:
        if object_name.matches(reading.domain, properties):
            return f"excludeObjectNames has {object_name.text}"
    for object_name, attributes in config.excluded_attributes:
        if reading.attribute in attributes and object_name.matches(reading.domain, properties):
            return f"excludeObjectNameAttributes has {object_name.text}"
    is_attribute_included = not config.included_attributes or any(
        reading.attribute in attributes and object_name.matches(reading.domain, properties)
        for object_name, attributes in config.included_attributes
    )
    if not is_attribute_included:
        return "includeObjectNameAttributes does not name it, and then nothing else is read"
    return ""


def _by_rule(
    config: AgentConfig, rule: Rule, match: re.Match[str] | None, reading: Reading, attribute: str, text: str
) -> Outcome:
    """
    Return the line that a rule makes of a reading, or the reason why it makes none.

    Raises ``ConfigError`` if the agent's scrapes fail.

    Args:
        config: The agent's configuration.
        rule: The rule that counts.
        match: Its match; None for a rule without a pattern.
        reading: The reading.
        attribute: The name of the attribute, in snake case if the rule says so.
        text: The text of the reading that rules match.

    """
    value = reading.value
    if rule.value:
        try:
            value = float(expanded(rule.value, match) if match else rule.value)
        except ValueError:
            return Outcome(rule, "its value is not a number")
    if rule.name is None or match is None:
        first_property, *other_properties = reading.properties
        name = _safe(f"{reading.domain}_{first_property[1]}_{attribute}")
        labels = [(_safe(key), value_of_label) for key, value_of_label in other_properties]
    else:
        name = _safe(expanded(rule.name, match))
        labels = [(_safe(expanded(key, match)), expanded(template, match)) for key, template in rule.labels.items()]
        labels = [(key, value_of_label) for key, value_of_label in labels if key and value_of_label]
    if not name:
        return Outcome(rule, "its name is empty, so the agent drops the attribute")
    if not isinstance(value, float):
        return Outcome(rule, "its value is a text")
    name = name.lower() if config.lowercase_names else name
    if config.lowercase_labels:
        labels = [(key.lower(), value_of_label) for key, value_of_label in labels]
    if len({key for key, _ in labels}) < len(labels):
        raise ConfigError("labels", ["two labels of one name"])
    is_counter = rule.type == "COUNTER" or (config.infer_counters and name.endswith("_total"))
    # a name may have several of these endings, one after the other
    while end := next((reserved for reserved in _RESERVED if name.endswith(reserved) and name != reserved), ""):
        name = name.removesuffix(end)
    if is_counter:
        name += "_total"
    return Outcome(rule, "", name, tuple(sorted(labels)), value * rule.factor, text)


def page_of(outcomes: Iterable[Outcome]) -> str:
    """
    Return the page of some outcomes.

    Where two lines have one name and the same labels, all lines of that name get the label ``_objectname``.
    """
    families: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if not outcome.reason:
            families[outcome.name].append(outcome)
    lines = [
        "# HELP jmx_scrape_error Non-zero if this scrape failed.",
        "# TYPE jmx_scrape_error gauge",
        "jmx_scrape_error 0.0",
    ]
    for name, members in sorted(families.items()):
        types = {(member.rule.type if member.rule else "UNKNOWN") for member in members}
        only_type = types.pop() if len(types) == 1 else ""
        kind = {"GAUGE": "gauge", "COUNTER": "counter"}.get(only_type, "untyped")
        lines += [f"# HELP {name} made by a rule", f"# TYPE {name} {kind}"]
        have_equal_labels = len({member.labels for member in members}) < len(members)
        for outcome in members:
            labels = outcome.labels
            if have_equal_labels:
                labels = tuple(sorted((*labels, ("_objectname", outcome.match_name.rpartition(":")[0]))))
            lines.append(f"{Outcome(None, '', name, labels).series} {_java_number(outcome.value)}")
    return "\n".join((*lines, ""))


def repeated(outcomes: Iterable[Outcome]) -> frozenset[str]:
    """
    Return the series that several readings become.

    An agent tells them apart by ``_objectname``, from 1.0, while there are several.
    """
    counts = Counter(outcome.series for outcome in outcomes if not outcome.reason)
    return frozenset(series for series, count in counts.items() if count > 1)


def _java_number(value: float | str) -> str:
    """Return a value as the text that rules match has it."""
    return value if isinstance(value, str) else repr(float(value))


def _snake_case(name: str) -> str:
    """Return what ``attrNameSnakeCase`` makes of an attribute's name."""
    return re.sub(r"(?<![A-Z_])(?=[A-Z])(?!\A)", "_", name).lower()


def _safe(name: str) -> str:
    """Return a name with an underscore for each run of characters that names cannot have."""
    text = re.sub(r"[^a-zA-Z0-9:]+", "_", name)
    return f"_{text}" if text[:1].isdigit() else text


def _escaped(value: str) -> str:
    """Return the value of a label as a page has it."""
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
