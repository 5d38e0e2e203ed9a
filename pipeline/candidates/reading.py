"""From a YAML file to candidates (docs/whatif.md describes the format)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from quotascope.metrics import WindowConfig
from quotascope.quotas import (
    InvalidQuotas,
    Located,
    QuotaSet,
    load_file,
    merged,
    named,
    rules_of,
)

from ..errors import InvalidCandidates
from .candidate import Candidate, MutationPolicy
from .grid import grid_of
from .shape import NAMES, Problems, items_of, number, text, unknown_keys
from .windows import BadWindows, windows

_TOP: Final = ("windows", "controller-windows", "quotas", "candidates", "grid")
_CANDIDATE: Final = ("name", "mutations", "quotas", "remove")
_WINDOWS: Final = ("num", "size-seconds")
_MOST: Final = 10_000


def read_candidates(path: Path) -> tuple[Candidate, ...]:
    """
    The candidates in a file, or on standard input for `-`, in their order; those of grids last.

    A file with nothing but `quotas` is one candidate of that name.

    Raises `InvalidCandidates` with all that is wrong in it.
    """
    try:
        document = load_file(path)
    except InvalidQuotas as error:
        raise InvalidCandidates(error.subject, error.problems) from None
    return candidates_in(document, named(path))


def candidates_in(document: Located, subject: str) -> tuple[Candidate, ...]:
    """The candidates of a document. Raises `InvalidCandidates`, which calls it `subject`."""
    problems = Problems()
    content = document.mapping
    if content is None:
        raise InvalidCandidates(
            subject, ["line 1: expected keys and values, such as `candidates:`"]
        )
    unknown_keys(content, _TOP, problems)
    found = list(islice(_candidates(content, problems), _MOST + 1))
    if not found and not problems.sentences:
        problems.add(document.line, "there is no candidate; give `candidates:`")
    if len(found) > _MOST:
        problems.add(document.line, f"more than {_MOST} candidates")
    else:
        _check_names(found, problems)
    if problems.sentences:
        raise InvalidCandidates(subject, problems.in_order())
    return tuple(candidate for _, candidate in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What all candidates of a file start from."""

    base: QuotaSet
    windows: WindowConfig
    controller_windows: WindowConfig

    def candidate(
        self,
        name: str,
        quotas: QuotaSet,
        policy: MutationPolicy = MutationPolicy.TOKEN_BUCKET,
    ) -> Candidate:
        return Candidate(
            name=name,
            quotas=quotas,
            windows=self.windows,
            controller_windows=self.controller_windows,
            mutation_policy=policy,
        )


def _candidates(
    content: Mapping[str, Located], problems: Problems
) -> Iterator[tuple[int, Candidate]]:
    common = _Common(
        base=_quotas(content, "quotas", problems),
        windows=_windows(content, "windows", problems),
        controller_windows=_windows(content, "controller-windows", problems),
    )
    if "candidates" not in content and "grid" not in content and "quotas" in content:
        yield content["quotas"].line, common.candidate("quotas", common.base)
    for item in items_of(content, "candidates", problems):
        candidate = _candidate(item, common, problems)
        if candidate is not None:
            yield item.line, candidate
    for item in items_of(content, "grid", problems):
        for name, quotas in grid_of(item, common.base, problems):
            yield item.line, common.candidate(name, quotas)


def _candidate(item: Located, common: _Common, problems: Problems) -> Candidate | None:
    content = item.mapping
    if content is None:
        problems.add(item.line, "expected keys and values, such as `name:`")
        return None
    unknown_keys(content, _CANDIDATE, problems)
    name = text(content, "name", item.line, problems)
    removed = _quotas(content, "remove", problems, removal=True)
    own = _quotas(content, "quotas", problems)
    quotas = merged(_without(common.base, removed), own)
    policy = _policy(content, item, problems)
    if name is None or policy is None:
        return None
    return common.candidate(name, quotas, policy)


def _quotas(
    content: Mapping[str, Located],
    key: str,
    problems: Problems,
    *,
    removal: bool = False,
) -> QuotaSet:
    item = content.get(key)
    if item is None:
        return QuotaSet()
    return rules_of(_removals(item, problems) if removal else item, problems.sentences)


def _removals(item: Located, problems: Problems) -> Located:
    """A list of removals as a list of quotas: each key stands for itself, so that entity and keys are checked as quotas are."""
    rules = []
    for rule in item.items or ():
        content = rule.mapping or {}
        unknown_keys(content, (*NAMES, "keys"), problems)
        names = {kind: content[kind] for kind in NAMES if kind in content}
        keys = {
            str(key.value): Located(value=1, line=key.line, text="1")
            for key in items_of(content, "keys", problems)
        }
        rules.append(Located(value={**names, **keys}, line=rule.line))
    return Located(value=tuple(rules), line=item.line)


def _without(quotas: QuotaSet, removed: QuotaSet) -> QuotaSet:
    return QuotaSet(
        {
            entity: {
                key: value
                for key, value in values.items()
                if key not in removed.get(entity, {})
            }
            for entity, values in quotas.items()
        }
    )


def _policy(
    content: Mapping[str, Located], item: Located, problems: Problems
) -> MutationPolicy | None:
    if "mutations" not in content:
        return MutationPolicy.TOKEN_BUCKET
    name = text(content, "mutations", item.line, problems)
    try:
        return MutationPolicy(name)
    except ValueError:
        known = " or ".join(policy.value for policy in MutationPolicy)
        problems.add(content["mutations"].line, f"`mutations` must be {known}")
        return None


def _windows(
    content: Mapping[str, Located], key: str, problems: Problems
) -> WindowConfig:
    item = content.get(key)
    if item is None:
        return WindowConfig()
    if item.mapping is None:
        problems.add(item.line, f"`{key}` needs {' and '.join(_WINDOWS)}")
        return WindowConfig()
    unknown_keys(item.mapping, _WINDOWS, problems)
    values = [
        number(item.mapping, name, item.line, problems) if name in item.mapping else one
        for name, one in zip(_WINDOWS, (11.0, 1.0), strict=True)
    ]
    if any(value is None or not value.is_integer() for value in values):
        problems.add(item.line, f"`{key}` takes whole numbers")
        return WindowConfig()
    return _checked_windows(item, [int(value or 0) for value in values], problems)


def _checked_windows(
    item: Located, values: list[int], problems: Problems
) -> WindowConfig:
    try:
        return windows(*values)
    except BadWindows as error:
        problems.add(item.line, str(error))
        return WindowConfig()


def _check_names(found: list[tuple[int, Candidate]], problems: Problems) -> None:
    lines: dict[str, int] = {}
    for line, candidate in found:
        if candidate.name in lines:
            first = lines[candidate.name]
            shown = candidate.name[:60]
            problems.add(line, f"the name {shown!r} is there already in line {first}")
        lines.setdefault(candidate.name, line)
