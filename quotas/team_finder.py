"""The team that owns an entity: one matcher for exporter, pages, API, commands and pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from quotascope.metrics.catalog.teams import UNDECIDED, UNOWNED, Team
from quotascope.pages.words import shown

from .patterns import PatternSet, matcher

NOT_OWNED: Final = -1
"""Number in place of a team's for an entity that no team owns."""
NOT_DECIDED: Final = -2
"""Number in place of a team's for an entity of which the first entry to match is unknown."""
WORDS: Final = {UNOWNED: "no team", UNDECIDED: "unknown team"}
"""Words for people in place of a team's name."""
_EVERY_NAME: Final = ".*"
_LONGEST: Final = 250
"""Characters of a name that people see: more than a file of teams allows, unless many are escaped."""


def team_words(label: str) -> str:
    r"""
    Return a team's name, ``UNOWNED`` or ``UNDECIDED`` as one line for people, safe to show.

    A team that is called as the words for no team stands in quotes.

    >>> team_words("pay\nments"), team_words("__unowned__"), team_words("no team")
    ('pay\\nments', 'no team', '"no team"')
    """
    if label in WORDS:
        return WORDS[label]
    return f'"{label}"' if label in WORDS.values() else shown(label, _LONGEST)


class TeamFinder:
    """
    Finds the team that owns an entity: the first one with an entry that matches it, as for the label `team` of alerts.

    A name costs one pass of a machine for all patterns, however many teams there are.

    Args:
        teams: teams in their order.
        real_name: function from the name that a user or client-id is known by to its real name; it returns None if that
            is unknown. Patterns are matched with the real name, and exact names with the known one.

    """

    def __init__(self, teams: Sequence[Team], real_name: Callable[[str], str | None] = str) -> None:
        self.teams = tuple(teams)
        entries = [(number, clients) for number, team in enumerate(teams) for clients in team.clients]
        self._team_of_entry = [number for number, _ in entries]
        self._users = _Names([(clients.user, clients.user_pattern) for _, clients in entries], real_name)
        self._client_ids = _Names([(clients.client_id, clients.client_id_pattern) for _, clients in entries], real_name)
        unconditional = self._users.without_condition & self._client_ids.without_condition
        self._always = min(unconditional, default=len(entries))
        """The first entry that matches every entity."""

    def number(self, user: str, client_id: str) -> int:
        """Return the place of the team of an entity in ``teams``; else ``NOT_OWNED`` or ``NOT_DECIDED``."""
        users, client_ids = self._users, self._client_ids
        of_user, of_client_id = users.matching(user), client_ids.matching(client_id)
        if of_user is None or of_client_id is None:
            return self._number_entry_by_entry(user, client_id)
        first = self._always
        for entry in of_user | of_client_id:
            if (
                entry < first
                and (entry in of_user or entry in users.without_condition)
                and (entry in of_client_id or entry in client_ids.without_condition)
            ):
                first = entry
        return self._team_of_entry[first] if first < len(self._team_of_entry) else NOT_OWNED

    def of(self, user: str, client_id: str) -> Team | None:
        """Return the team of an entity; None if no team owns it, and where the first entry to match is unknown."""
        number = self.number(user, client_id)
        return self.teams[number] if number >= 0 else None

    def label(self, user: str, client_id: str) -> str:
        """Return the name of the team of an entity, ``UNOWNED`` or ``UNDECIDED``."""
        return self.label_of(self.number(user, client_id))

    def label_of(self, number: int) -> str:
        """Return the name of a team by its number, ``UNOWNED`` or ``UNDECIDED``."""
        if number >= 0:
            return self.teams[number].name
        return UNOWNED if number == NOT_OWNED else UNDECIDED

    def _number_entry_by_entry(self, user: str, client_id: str) -> int:
        """Return the number of the first entry that may match; ``NOT_DECIDED`` if it is unknown whether it does."""
        for entry, number in enumerate(self._team_of_entry):
            matches = self._users.matches(entry, user), self._client_ids.matches(entry, client_id)
            if False not in matches:
                return NOT_DECIDED if None in matches else number
        return NOT_OWNED


class _Names:
    """The conditions of all entries on one dimension of entities: an exact name, a pattern, or none."""

    def __init__(
        self, conditions: Sequence[tuple[str | None, str | None]], real_name: Callable[[str], str | None]
    ) -> None:
        self._conditions = conditions
        self._real_name = real_name
        self._exact: dict[str, set[int]] = {}
        self._by_pattern: dict[str, set[int]] = {}
        self.without_condition: set[int] = set()
        """The entries that any name meets."""
        for entry, (name, pattern) in enumerate(conditions):
            if name is not None:
                self._exact.setdefault(name, set()).add(entry)
            elif pattern in {None, _EVERY_NAME}:
                self.without_condition.add(entry)
            else:
                self._by_pattern.setdefault(str(pattern), set()).add(entry)
        self._patterns = PatternSet([*self._by_pattern])
        self._entries_of_pattern = [*self._by_pattern.values()]

    def matching(self, name: str) -> set[int] | None:
        """Return the entries whose condition a name meets; None if that is unknown for one of them."""
        entries: Iterable[set[int]] = ()
        if self._by_pattern:
            text = self._real_name(name)
            if text is None:
                return None
            entries = (self._entries_of_pattern[place] for place in self._patterns.matching(text))
        return self._exact.get(name, set()).union(*entries)

    def matches(self, entry: int, name: str) -> bool | None:
        """Return whether a name meets the condition of one entry; None where that is unknown."""
        exact, pattern = self._conditions[entry]
        if exact is not None:
            return exact == name
        if entry in self.without_condition:
            return True
        text = self._real_name(name)
        if text is None:
            return None
        return matcher(str(pattern))(text)
