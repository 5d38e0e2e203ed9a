"""A grid: one key of one entity takes one value after the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from quotascope.quotas import Located, QuotaSet, merged, number_text, rules_of

from .shape import NAMES, Problems, number, text, unknown_keys

_KEYS: Final = ("name", *NAMES, "key", "values", "from", "to", "steps", "scale")
_MOST_STEPS: Final = 1000
_WHOLE: Final = ("producer_byte_rate", "consumer_byte_rate")


def grid_of(
    item: Located, base: QuotaSet, problems: Problems
) -> list[tuple[str, QuotaSet]]:
    """The quotas of a grid with the names of their candidates; nothing when something is wrong with it."""
    content = item.mapping
    if content is None:
        problems.add(item.line, "expected keys and values, such as `key:`")
        return []
    unknown_keys(content, _KEYS, problems)
    key = text(content, "key", item.line, problems)
    values = _values(content, key, item, problems)
    if key is None or not values:
        return []
    names = {kind: content[kind] for kind in NAMES if kind in content}
    title = text(content, "name", item.line, problems) if "name" in content else None
    points = []
    for value in values:
        rule = Located(value={**names, key: value}, line=value.line)
        rules = Located(value=(rule,), line=value.line)
        quotas = rules_of(rules, problems.sentences)
        point = f"{key}={_shown(value)}"
        points.append((f"{title} {point}" if title else point, merged(base, quotas)))
    return points


def _values(
    content: Mapping[str, Located], key: str | None, item: Located, problems: Problems
) -> list[Located]:
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


def _steps(
    content: Mapping[str, Located], item: Located, *, whole: bool, problems: Problems
) -> list[float]:
    first = number(content, "from", item.line, problems)
    last = number(content, "to", item.line, problems)
    steps = number(content, "steps", item.line, problems)
    scale = text(content, "scale", item.line, problems) if "scale" in content else "log"
    if first is None or last is None or steps is None:
        return []
    if scale not in ("log", "linear"):
        problems.add(item.line, "`scale` must be log or linear")
    elif steps != int(steps) or not 2 <= steps <= _MOST_STEPS:  # noqa: PLR2004 - both ends
        problems.add(
            item.line, f"`steps` must be a whole number from 2 to {_MOST_STEPS}"
        )
    elif not 0 < first < last:
        problems.add(item.line, "`from` must be above 0 and below `to`")
    else:
        values = _spaced(first, last, int(steps), logarithmic=scale == "log")
        if whole:
            return list(dict.fromkeys(float(round(value)) for value in values))
        return values
    return []


def _spaced(first: float, last: float, steps: int, *, logarithmic: bool) -> list[float]:
    shares = [step / (steps - 1) for step in range(1, steps - 1)]
    if logarithmic:
        ratio = math.log(last / first)
        inner = [first * math.exp(ratio * share) for share in shares]
    else:
        inner = [first + (last - first) * share for share in shares]
    return [first, *inner, last]


def _shown(value: Located) -> str:
    return value.text[:40]
