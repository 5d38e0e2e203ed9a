"""What a jmx_exporter makes of an attribute by a rules file; ``tests/exporter/sources/test_real_own_rules.py`` has the real one."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from quotascope.metrics import quote_tag_value

Sample = tuple[str, dict[str, str], float]


@lru_cache(maxsize=2)
def rules_of(text: str) -> list[tuple[re.Pattern[str], Mapping[str, Any]]]:
    """The rules of a file, each with its pattern as the agent extends it."""
    return [(re.compile(f"^.*(?:{rule['pattern']}).*$"), rule) for rule in yaml.safe_load(text)["rules"]]


def sample(
    text: str, domain: str, properties: Sequence[tuple[str, str]], attribute: str, value: float = 1.0
) -> Sample | None:
    """Name, labels and number by the first rule that matches; properties come in the order of the MBean's name, unquoted."""
    inner = ", ".join(f"{key}={quote_tag_value(reported)}" for key, reported in properties)
    for pattern, rule in rules_of(text):
        found = pattern.match(f"{domain}<{inner}><>{attribute}: {value}")
        if found:
            labels = {name: _replaced(found, label) for name, label in rule.get("labels", {}).items()}
            shown = {name: label for name, label in labels.items() if label}
            return rule["name"], shown, value * rule.get("valueFactor", 1.0)
    return None


def _replaced(found: re.Match[str], text: str) -> str:
    return re.sub(r"\$(\d+)", lambda group: found[int(group[1])] or "", text)
