"""
Teams, read from a file (docs/guides/teams.md describes the format), or all its problems by line.

A team has entries of clients, as the entities of quotas are called by user and client-id. The first team with an entry
that matches owns the entity; `TeamFinder` finds it, for everything that shows teams.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from quotascope.metrics.catalog.teams import Clients, Team
from quotascope.metrics.kafka.entities import QuotaType

from .errors import InvalidQuotas
from .patterns import matcher
from .problems import Content, Problems
from .yaml_file import Located, load_file, named

BUDGETS: Final = {
    "produce_bytes_per_second": QuotaType.PRODUCE,
    "fetch_bytes_per_second": QuotaType.FETCH,
    "request_threads": QuotaType.REQUEST,
    "controller_mutations_per_second": QuotaType.CONTROLLER_MUTATION,
}
"""Keys of budgets, in the unit in which the metrics have the usage."""
_PRICES: Final = ("price_per_gb_in", "price_per_gb_out")
_TEAM: Final = ("team", "contact", "clients", *BUDGETS, *_PRICES)
_FILE: Final = ("teams", "currency")
_CURRENCY: Final = re.compile(r"[A-Z]{3}", re.ASCII)
"""Form of a code of ISO 4217."""
_NAMES: Final = (("user", "user_pattern"), ("client_id", "client_id_pattern"))
_CLIENTS: Final = tuple(key for keys in _NAMES for key in keys)
_REPLACED: Final = {
    "owners": "write `teams:`, each with `team:` and `clients:`",
    "default_owner": "write a last team with `clients: [{user_pattern: .*}]`",
}
"""Keys that people may look for, and what to write instead."""
_MOST: Final = 10_000
_LONGEST: Final = 200
"""Characters of the name of a team, which is a label of series and alerts."""
_POWER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+", re.ASCII)
_EVERY_NAME: Final = ".*"


class Shadowed(NamedTuple):
    """An entry that can match no entity, since an earlier one matches all that it does."""

    team: str
    """Its team."""
    place: str
    """The entry, such as ``teams[1].clients[0]``."""
    by_team: str
    """The team of the earlier entry."""
    by_place: str


def read_teams(path: Path | str, known_as: Callable[[str], str] = str) -> tuple[Team, ...]:
    """
    Return the teams in a file, or on standard input for `-`, in their order.

    Args:
        path: path of the file.
        known_as: function from a user or client-id of the file to the name that it is known by where entities are
            matched.

    Raises:
        InvalidQuotas: something is wrong in the file; the message has all of it, by line and key.

    """
    document = load_file(Path(path))
    problems = Problems()
    teams: list[Team] = []
    content = document.mapping
    if content is None:
        problems.add(document.line, "expected keys and values, such as `teams:`")
    else:
        for key in content.keys() & _REPLACED.keys():
            problems.add(content[key].line, f"{key} is no key of a file of teams: {_REPLACED[key]}")
        problems.unknown_keys({key: item for key, item in content.items() if key not in _REPLACED}, _FILE)
        currency = _currency(content, problems)
        listed = problems.items(content, "teams")
        if len(listed) > _MOST:
            problems.add(content["teams"].line, f"teams: {len(listed)} teams, but at most {_MOST} are read")
        lines: dict[str, int] = {}
        for number, item in enumerate(islice(listed, _MOST)):
            team = _team(item, f"teams[{number}]", known_as, currency, problems)
            if team is None:
                continue
            if team.name in lines:
                where = f"teams[{number}].team"
                text = f"{where}: the team {team.name[:60]!r} is there already in line {lines[team.name]}"
                problems.add(item.line, text)
            lines.setdefault(team.name, item.line)
            teams.append(team)
    if not teams and not problems.sentences:
        problems.add(document.line, "there is no team; give `teams:`")
    if problems.sentences:
        raise InvalidQuotas(named(Path(path)), problems.in_order())
    return tuple(teams)


def _currency(content: Content, problems: Problems) -> str | None:
    """Return the currency of all prices, one for the file: sums of two would mean nothing; None without one."""
    if "currency" not in content:
        return None
    value = content["currency"]
    if isinstance(value.value, str) and _CURRENCY.fullmatch(value.value):
        return value.value
    problems.add(value.line, f"currency must be a code of ISO 4217 such as EUR, got {value.text[:60]!r}")
    return None


def _team(
    item: Located, place: str, known_as: Callable[[str], str], currency: str | None, problems: Problems
) -> Team | None:
    """Return a team; record all its problems, and return None if it has some."""
    before = len(problems.sentences)
    content = item.mapping
    if content is None:
        problems.add(item.line, f"{place}: expected keys and values, such as `team: payments`")
        return None
    if "currency" in content:
        text = f"{place}.currency is no key of a team: all prices of a file are in one currency, a key beside `teams`"
        problems.add(content["currency"].line, text)
    _refuse_unknown({key: value for key, value in content.items() if key != "currency"}, place, _TEAM, problems)
    name = _text(content, "team", item, place, problems)
    if name is not None and (name.startswith("__") or len(name) > _LONGEST):
        problem = f"is longer than {_LONGEST} characters" if len(name) > _LONGEST else "must not begin with __"
        problems.add(content["team"].line, f"{place}.team {problem}: {name[:60]!r}")
    contact = _text(content, "contact", item, place, problems) if "contact" in content else None
    listed = content.get("clients")
    clients: list[Clients] = []
    if listed is None or not listed.items:
        line = item.line if listed is None else listed.line
        problems.add(line, f"{place}.clients must be a list of users and client-ids, such as `- user: alice`")
    else:
        numbered = enumerate(listed.items)
        read = (_clients(entry, f"{place}.clients[{number}]", known_as, problems) for number, entry in numbered)
        clients = [entry for entry in read if entry is not None]
    budgets = {
        kind: _number(content, key, place, problems, least="above 0") for key, kind in BUDGETS.items() if key in content
    }
    prices = {key: _number(content, key, place, problems, least="0 or more") for key in _PRICES if key in content}
    if name is None or len(problems.sentences) > before:
        return None
    return Team(
        name=name,
        clients=tuple(clients),
        contact=contact,
        budgets=budgets,
        currency=currency if prices else None,
        **prices,
    )


def _clients(item: Located, place: str, known_as: Callable[[str], str], problems: Problems) -> Clients | None:
    """Return an entry of a team; record all its problems, and return None if it has some."""
    before = len(problems.sentences)
    content = item.mapping
    if content is None:
        problems.add(item.line, f"{place}: expected keys and values, such as `user: alice`")
        return None
    _refuse_unknown(content, place, _CLIENTS, problems)
    for key, pattern in _NAMES:
        if key in content and pattern in content:
            problems.add(content[pattern].line, f"{place}: {key} and {pattern} exclude each other")
    if not content.keys() & set(_CLIENTS):
        problems.add(item.line, f"{place} needs one of {', '.join(_CLIENTS)}")
    texts = {
        key: _text(content, key, item, place, problems, may_be_empty=key in {"user", "client_id"})
        for key in _CLIENTS
        if key in content
    }
    for _, key in _NAMES:
        text = texts.get(key)
        if text is not None:
            try:
                matcher(text)
            except ValueError as error:
                problems.add(content[key].line, f"{place}.{key} {error}")
    if len(problems.sentences) > before:
        return None
    # an empty name stays empty, and patterns are of real names
    known = {key: known_as(text) if text and key in {"user", "client_id"} else text for key, text in texts.items()}
    return Clients(**known)


def _refuse_unknown(content: Content, place: str, allowed: tuple[str, ...], problems: Problems) -> None:
    """Add a problem for each unknown key, which also names the place."""
    own = Problems()
    own.unknown_keys(content, allowed)
    # a sentence reads "unknown key …; did you mean …"
    problems.sentences += [sentence.replace("; ", f" under {place}; ", 1) for sentence in own.sentences]


def _text(
    content: Content, key: str, item: Located, place: str, problems: Problems, *, may_be_empty: bool = False
) -> str | None:
    """Return the text under a key of an item; record a problem and return None if there is none."""
    value = content.get(key)
    if value is None:
        problems.add(item.line, f"{place} lacks the key {key!r}")
        return None
    text = value.value
    if not isinstance(text, str) or not (may_be_empty or text.strip()):
        what = "a text" if may_be_empty else "a text that is not empty"
        quotes = "" if isinstance(text, str) or value.text == "" else f"; write it in quotes: {value.text[:60]!r}"
        problems.add(value.line, f"{place}.{key} must be {what}{quotes}")
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        problems.add(value.line, f"{place}.{key} contains an incomplete Unicode character")
        return None
    return text


def _number(content: Content, key: str, place: str, problems: Problems, *, least: str) -> float:
    """Return a number that is finite and ``above 0`` or ``0 or more``; record a problem and return NaN for others."""
    value = content[key].value
    if isinstance(value, str) and not content[key].quoted and _POWER.fullmatch(value):
        value = float(value)  # YAML 1.1 needs a point and a sign, as in 1.0e+7
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    number = float(value) if isinstance(value, int | float) and is_number else math.nan
    if not math.isfinite(number) or number < 0 or (number == 0 and least == "above 0"):
        got = content[key].text[:60]
        problems.add(
            content[key].line, f"{place}.{key} must be a plain number, {least}{f', got {got!r}' if got else ''}"
        )
        return math.nan
    # a float has about 16 digits: a longer number would be rounded without a word
    try:
        is_kept = Decimal(content[key].text) == Decimal(repr(number))
    except InvalidOperation:  # a number of YAML with another base, or with underscores
        is_kept = True
    if not is_kept:
        problems.add(content[key].line, f"{place}.{key} has more digits than can be kept: write {number!r}")
    return number


def shadowed(teams: tuple[Team, ...]) -> Iterator[Shadowed]:
    """
    Yield the entries of which it is certain that they match no entity, in their order.

    Those are entries that an earlier one includes: whether patterns include each other is not decided, unless they are
    the same or match every name.
    """
    earlier: list[tuple[str, str, Clients]] = []
    for number, team in enumerate(teams):
        for place, clients in enumerate(team.clients):
            name = f"teams[{number}].clients[{place}]"
            wider = next(((owner, entry) for owner, entry, wide in earlier if _includes(wide, clients)), None)
            if wider is not None:
                wider_team, wider_name = wider
                yield Shadowed(team.name, name, wider_team, wider_name)
            earlier.append((team.name, name, clients))


def _includes(wide: Clients, narrow: Clients) -> bool:
    """Return whether it is certain that an entry matches each entity that another one matches."""
    return _includes_names((wide.user, wide.user_pattern), (narrow.user, narrow.user_pattern)) and _includes_names(
        (wide.client_id, wide.client_id_pattern), (narrow.client_id, narrow.client_id_pattern)
    )


def _includes_names(wide: tuple[str | None, str | None], narrow: tuple[str | None, str | None]) -> bool:
    """Return what `_includes` returns, for one name or pattern of each entry; None for both matches any name."""
    (name, pattern), (other_name, other_pattern) = wide, narrow
    if name is None and pattern in {None, _EVERY_NAME}:
        return True
    if name is not None:
        return name == other_name
    assert pattern is not None  # noqa: S101 - for mypy
    if other_name is not None:
        return matcher(pattern)(other_name)
    return pattern == other_pattern
