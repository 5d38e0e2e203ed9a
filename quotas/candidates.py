"""
Candidates of a replay, read from a file (docs/guides/whatif.md describes the format), or all its problems by line.

Resolving them to entities is Kafka's precedence (`quotascope.metrics.kafka.rules.RuleTable`). `pipeline.replay` shows
what they would have done, the exporter what they would do now.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.errors import InvalidConfig
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.metrics.kafka.windows import WindowConfig

from .errors import BadWindows, InvalidQuotas
from .problems import Content, Problems
from .quota_file import rules_of
from .quota_set import QuotaSet, merged, number_text
from .yaml_file import Located, load_file, named

_MOST_WINDOWS: Final = 10_000
"""Bound of the windows of each sensor, all of which are held in memory."""
_LONGEST: Final = 86_400
"""Longest window in seconds: a day."""


class MutationPolicy(Enum):
    """Policy that counts controller mutations; the value is its name in a file."""

    TOKEN_BUCKET = "token-bucket"  # noqa: S105 - no password
    """Kafka's policy (KIP-599)."""

    BURST_SPREADING = "burst-spreading"
    """Windowed rate of an early draft of KIP-599, for comparison: no broker has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """All quotas that a replay applies: a key that is not in it is unlimited."""

    name: str
    """Name of the candidate in results."""

    quotas: QuotaSet
    """Quotas by entity and key, as `kafka-configs` would set them. Quotas on addresses have no part in a replay."""

    added: QuotaSet = field(default_factory=QuotaSet)
    """Part of `quotas` that the candidate sets itself, beside the quotas that all candidates of the file start from."""

    removed: QuotaSet = field(default_factory=QuotaSet)
    """Quotas that it removes from those it starts from: entities and keys count, values mean nothing."""

    based: bool = False
    """True if the file lists the quotas that all of its candidates start from."""

    windows: WindowConfig = field(default_factory=WindowConfig)
    """The brokers' `quota.window.num` and `quota.window.size.seconds`."""

    controller_windows: WindowConfig = field(default_factory=WindowConfig)
    """The controllers' `controller.quota.window.num` and `controller.quota.window.size.seconds`."""

    mutation_policy: MutationPolicy = MutationPolicy.TOKEN_BUCKET

    def over(self, base: QuotaSet) -> Candidate:
        """Return the candidate that starts from these quotas."""
        remaining = {
            entity: {key: value for key, value in values.items() if key not in self.removed.get(entity, {})}
            for entity, values in base.items()
        }  # fmt: skip
        return replace(self, quotas=merged(QuotaSet(remaining), self.added))

    def tables(self) -> Mapping[QuotaType, RuleTable]:
        """Return the rules of each quota type, to be resolved by Kafka's precedence."""
        return self.quotas.tables()


def windows(num: int, size_seconds: int) -> WindowConfig:
    """Return the windows with this number and length. Raises `BadWindows`."""
    if num > _MOST_WINDOWS or size_seconds > _LONGEST:
        raise BadWindows(f"a replay takes at most {_MOST_WINDOWS} windows of at most {_LONGEST} s")
    try:
        return WindowConfig(samples=num, window_seconds=size_seconds)
    except InvalidConfig as error:
        raise BadWindows(str(error)) from None


def windows_of_text(text: str) -> WindowConfig:
    """Return windows from a text of a command line, `11x1`: their number and their seconds. Raises `BadWindows`."""
    match = re.fullmatch(r"([0-9]{1,5})x([0-9]{1,5})", text)
    if match is None:
        raise BadWindows(f"windows are given as NUMxSECONDS, such as 11x1, not {text[:60]!r}")
    return windows(int(match[1]), int(match[2]))


_NAMES: Final = ("user", "client-id", "ip")
"""The keys that name the entity of a quota."""
_TOP: Final = ("windows", "controller-windows", "quotas", "candidates", "grid")
_CANDIDATE: Final = ("name", "mutations", "quotas", "remove")
_GRID: Final = ("name", *_NAMES, "key", "values", "from", "to", "steps", "scale")
_WINDOWS: Final = ("num", "size-seconds")
_WHOLE: Final = ("producer_byte_rate", "consumer_byte_rate")
_MOST: Final = 10_000
_MOST_STEPS: Final = 1000


def read_candidates(path: Path | str) -> tuple[Candidate, ...]:
    """
    Return the candidates in a file, or on standard input for `-`, in their order; those of grids last.

    A file with nothing but `quotas` is one candidate of that name.

    Raises `InvalidQuotas` with all that is wrong in it.
    """
    document = load_file(Path(path))
    problems = Problems()
    content = problems.mapping(document, _TOP, "candidates:")
    numbered = [] if content is None else list(islice(_candidates(content, problems), _MOST + 1))
    if not numbered and not problems.sentences:
        problems.add(document.line, "there is no candidate; give `candidates:`")
    if len(numbered) > _MOST:
        problems.add(document.line, f"more than {_MOST} candidates")
    else:
        lines: dict[str, int] = {}
        for line, candidate in numbered:
            name = candidate.name
            if name in lines:
                problems.add(line, f"the name {name[:60]!r} is there already in line {lines[name]}")
            lines.setdefault(name, line)
    if problems.sentences:
        raise InvalidQuotas(named(Path(path)), problems.in_order())
    return tuple(candidate for _, candidate in numbered)


def _candidates(content: Content, problems: Problems) -> Iterator[tuple[int, Candidate]]:
    """Yield the candidates of a file with their lines: listed ones first, then those of grids."""
    common = Candidate(
        name="quotas",
        quotas=_quotas(content, "quotas", problems),
        based="quotas" in content,
        windows=_windows(content, "windows", problems),
        controller_windows=_windows(content, "controller-windows", problems),
    )
    if "candidates" not in content and "grid" not in content and "quotas" in content:
        yield content["quotas"].line, common
    for item in problems.items(content, "candidates"):
        candidate = _candidate(item, common, problems)
        if candidate is not None:
            yield item.line, candidate
    for item in problems.items(content, "grid"):
        for name, added in _grid(item, problems):
            candidate = replace(common, name=name, added=added)
            yield item.line, candidate.over(common.quotas)


def _candidate(item: Located, common: Candidate, problems: Problems) -> Candidate | None:
    """Return a listed candidate, which has the rest from `common`; None if its name or policy has a problem."""
    content = problems.mapping(item, _CANDIDATE, "name:")
    if content is None:
        return None
    name = problems.text(content, "name", item.line)
    removed = _quotas(content, "remove", problems)
    added = _quotas(content, "quotas", problems)
    policy: MutationPolicy | None = MutationPolicy.TOKEN_BUCKET
    if "mutations" in content:
        called = problems.text(content, "mutations", item.line)
        policy = next((member for member in MutationPolicy if member.value == called), None)
        if policy is None:
            choices = " or ".join(member.value for member in MutationPolicy)
            problems.add(content["mutations"].line, f"`mutations` must be {choices}")
    if name is None or policy is None:
        return None
    candidate = replace(common, name=name, added=added, removed=removed, mutation_policy=policy)
    return candidate.over(common.quotas)


def _quotas(content: Content, key: str, problems: Problems) -> QuotaSet:
    """
    Return the quotas under a key.

    Those to remove are read as quotas as well, in which each key stands for itself, so that entity and keys are checked
    as those of quotas.
    """
    item = content.get(key)
    if item is None:
        return QuotaSet()
    if key != "remove":
        return rules_of(item, problems.sentences)
    rules = []
    for rule in item.items or ():
        rule_content = rule.mapping or {}
        problems.unknown_keys(rule_content, (*_NAMES, "keys"))
        keys = {
            str(key.value): Located(value=1, line=key.line, text="1") for key in problems.items(rule_content, "keys")
        }
        rules.append(Located(value={**_names(rule_content), **keys}, line=rule.line))
    return rules_of(Located(value=tuple(rules), line=item.line), problems.sentences)


def _names(content: Content) -> Content:
    """Return the keys that name the entity of a quota."""
    return {kind: content[kind] for kind in _NAMES if kind in content}


def _windows(content: Content, key: str, problems: Problems) -> WindowConfig:
    """Return the windows under a key; Kafka's defaults without it, and after recording a problem."""
    item = content.get(key)
    if item is None:
        return WindowConfig()
    if item.mapping is None:
        problems.add(item.line, f"`{key}` needs {' and '.join(_WINDOWS)}")
        return WindowConfig()
    problems.unknown_keys(item.mapping, _WINDOWS)
    values = [
        problems.number(item.mapping, name, item.line) if name in item.mapping else default
        for name, default in zip(_WINDOWS, (11.0, 1.0), strict=True)
    ]
    if any(value is None or not value.is_integer() for value in values):
        problems.add(item.line, f"`{key}` takes whole numbers")
        return WindowConfig()
    try:
        return windows(*(int(value or 0) for value in values))
    except BadWindows as error:
        problems.add(item.line, str(error))
        return WindowConfig()


def _grid(item: Located, problems: Problems) -> Iterator[tuple[str, QuotaSet]]:
    """
    Yield a quota for each value of a grid, with the name of its candidate.

    One key of one entity takes one value after the other.
    """
    content = problems.mapping(item, _GRID, "key:")
    if content is None:
        return
    key = problems.text(content, "key", item.line)
    values = _values(content, key, item, problems)
    if key is None or not values:
        return
    title = f"{problems.text(content, 'name', item.line)} " if "name" in content else ""
    for value in values:
        rule = Located(value={**_names(content), key: value}, line=value.line)
        rules = Located(value=(rule,), line=value.line)
        quotas = rules_of(rules, problems.sentences)
        yield f"{title}{key}={value.text[:40]}", quotas


def _values(content: Content, key: str | None, item: Located, problems: Problems) -> list[Located]:
    """Return the values of a grid: those that are listed, or steps of a range; record a problem if there are none."""
    if "values" in content:
        spare = [name for name in ("from", "to", "steps", "scale") if name in content]
        if spare:
            problems.add(item.line, f"either `values` or `{spare[0]}`, not both")
        listed = content["values"].items
        if not listed:
            problems.add(content["values"].line, "`values` must be a list of numbers")
        return list(listed or ())
    line = content["from"].line if "from" in content else item.line
    return [
        Located(value=value, line=line, text=number_text(value))
        for value in _steps(content, item, whole=key in _WHOLE, problems=problems)
    ]


def _steps(content: Content, item: Located, *, whole: bool, problems: Problems) -> list[float]:
    """Return the steps of a range, both ends included; none after recording a problem. `whole` ones are rounded."""
    lowest = problems.number(content, "from", item.line)
    highest = problems.number(content, "to", item.line)
    steps = problems.number(content, "steps", item.line)
    scale = problems.text(content, "scale", item.line) if "scale" in content else "log"
    if lowest is None or highest is None or steps is None:
        return []
    if scale not in ("log", "linear"):
        problems.add(item.line, "`scale` must be log or linear")
    elif not steps.is_integer() or not 2 <= steps <= _MOST_STEPS:  # noqa: PLR2004 - both ends
        problems.add(item.line, f"`steps` must be a whole number from 2 to {_MOST_STEPS}")
    elif highest == math.inf:
        problems.add(item.line, "`to` must be finite")
    elif not 0 < lowest < highest:
        problems.add(item.line, "`from` must be above 0 and below `to`")
    else:
        shares = [step / (int(steps) - 1) for step in range(1, int(steps) - 1)]
        if scale == "log":
            ratio = math.log(highest / lowest)
            inner = [lowest * math.exp(ratio * share) for share in shares]
        else:
            inner = [lowest + (highest - lowest) * share for share in shares]
        values = [lowest, *inner, highest]
        if not whole:
            return values
        return list(dict.fromkeys(float(round(value)) for value in values))
    return []
