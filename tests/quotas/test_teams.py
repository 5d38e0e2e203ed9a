"""The file of teams, and the team that owns an entity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotascope.metrics.catalog.teams import UNDECIDED, UNOWNED, Clients, Team
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas import InvalidQuotas
from quotascope.quotas.patterns import PatternSet, matcher
from quotascope.quotas.team_finder import TeamFinder
from quotascope.quotas.teams import read_teams, shadowed

Read = Callable[..., tuple[Team, ...]]
EVERYTHING = """
currency: EUR
teams:
- team: payments
  contact: "#payments"
  clients: [{user: alice}, {user_pattern: a.*, client_id: ''}, {client_id_pattern: etl-.*}]
  produce_bytes_per_second: 50000000
  fetch_bytes_per_second: 1e7
  request_threads: 0.5
  controller_mutations_per_second: 10
  price_per_gb_in: 0
  price_per_gb_out: 0.05
- {team: "中 {{ }}", clients: [{user: "a\\nb"}]}
"""
WRONG = """
teams:
- team: payments
  clients: [{user: alice}]
- team: payments  # teams[1].team: the team 'payments' is there already in line 3
  clients: [{user: bob}]
- clients: [{user: bob}]  # teams[2] lacks the key 'team'
- team: ''  # teams[3].team must be a text that is not empty
  clients: []  # teams[3].clients must be a list of users and client-ids
- team: __unowned__  # teams[4].team must not begin with __: '__unowned__'
  clients: {user: bob}  # teams[4].clients must be a list
- team: a
  contct: x  # unknown key 'contct' under teams[5]; did you mean 'contact'?
  clients:
  - {}  # teams[5].clients[0] needs one of user, user_pattern, client_id, client_id_pattern
  - user: 7  # teams[5].clients[1].user must be a text; write it in quotes: '7'
  - user: a
    user_pattern: a.*  # teams[5].clients[2]: user and user_pattern exclude each other
  - user_pattern: (?!x)a  # teams[5].clients[3].user_pattern '(?!x)a' is not an RE2 expression
  - client_id_pattern: (  # teams[5].clients[4].client_id_pattern '(' is not an RE2 expression
  - alice  # teams[5].clients[5]: expected keys and values
  - clientid: a  # unknown key 'clientid' under teams[5].clients[6]; did you mean 'client_id'?
    # teams[5].clients[6] needs
  - user: "\\udfff"  # teams[5].clients[7].user contains an incomplete Unicode character
- team: b
  clients: [{user: b}]
  produce_bytes_per_second: 0  # teams[6].produce_bytes_per_second must be a plain number, above 0, got '0'
  fetch_bytes_per_second: 50MB  # teams[6].fetch_bytes_per_second must be a plain number, above 0, got '50MB'
  request_threads: .inf  # teams[6].request_threads must be a plain number, above 0, got '.inf'
  controller_mutations_per_second: true  # teams[6].controller_mutations_per_second must be
  price_per_gb_in: -1  # teams[6].price_per_gb_in must be a plain number, 0 or more, got '-1'
  team: c  # the key 'team' is there already in line 24
- 5  # teams[7]: expected keys and values, such as `team: payments`
owners: []  # owners is no key of a file of teams: write `teams:`, each with `team:` and `clients:`
default_owner: x  # default_owner is no key of a file of teams: write a last team with `clients: [{user_pattern: .*}]`
"""


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return the teams of a text."""

    def teams_of(text: str) -> tuple[Team, ...]:
        file = tmp_path / "teams.yaml"
        file.write_text(text, encoding="utf-8")
        return read_teams(file, str.upper)

    return teams_of


def test_everything_that_a_team_has(read: Read) -> None:
    """A team has names as in series, patterns unchanged, and budgets by quota type."""
    payments, other = read(EVERYTHING)
    assert payments == Team(
        name="payments",
        contact="#payments",
        clients=(
            Clients(user="ALICE"),
            Clients(user_pattern="a.*", client_id=""),
            Clients(client_id_pattern="etl-.*"),
        ),
        budgets={
            QuotaType.PRODUCE: 5e7,
            QuotaType.FETCH: 1e7,
            QuotaType.REQUEST: 0.5,
            QuotaType.CONTROLLER_MUTATION: 10.0,
        },
        price_per_gb_in=0.0,
        price_per_gb_out=0.05,
        currency="EUR",
    )
    assert other.currency is None  # without a price
    assert (other.name, other.clients) == ("中 {{ }}", (Clients(user="A\nB"),))


def test_all_mistakes_are_named_by_line_and_key(read: Read) -> None:
    """Mistakes are reported in the order of lines, as the comment behind each line says."""
    commented = 0
    repeated = "  team: c  # the key 'team' is there already in line 24\n"
    with pytest.raises(InvalidQuotas) as caught:
        read(WRONG.replace(repeated, ""))
    expected = []
    for number, line in enumerate(WRONG.replace(repeated, "").splitlines(), 1):
        content, *comments = line.split("  # ")
        commented = number if content.strip() else commented  # a comment alone goes with the line above
        expected += [f"line {commented}: {comment}" for comment in comments]
    assert len(caught.value.problems) == len(expected)
    for problem, text in zip(caught.value.problems, expected, strict=True):
        assert problem.startswith(text)
    with pytest.raises(InvalidQuotas, match="the key 'team' is there already"):
        read(WRONG)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no team; give `teams:`"),
        ("teams: []", "there is no team"),
        ("- team: a", "expected keys and values, such as `teams:`"),
        ("teams: {a: b}", "`teams` must be a list"),
        ("team: [{team: a}]", "unknown key 'team'; did you mean 'teams'?"),
        ("teams: [", "not valid YAML"),
        ("currency: euro\nteams: [{team: a, clients: [{user: a}]}]", "currency must be a code of ISO 4217 such as EUR"),
        ("currency: 978\nteams: [{team: a, clients: [{user: a}]}]", "currency must be a code of ISO 4217"),
        ("teams: [{team: a, clients: [{user: a}], currency: EUR}]", "all prices of a file are in one currency"),
        (
            f"teams: [{{team: {'x' * 10_000}, clients: [{{user: a}}]}}]",
            "teams[0].team is longer than 200 characters: 'xxx",
        ),
        *(
            (
                f"currency: EUR\nteams: [{{team: a, clients: [{{user: a}}], price_per_gb_in: {price}}}]",
                "teams[0].price_per_gb_in has more digits than can be kept: write 0.",
            )
            for price in ("1e-400", "0.1000000000000000055511151231257827")
        ),
    ],
)
def test_a_file_without_teams_is_refused(text: str, said: str, read: Read) -> None:
    """A file without teams is refused, as it may have been truncated."""
    with pytest.raises(InvalidQuotas) as caught:
        read(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500


def test_entries_that_an_earlier_one_includes() -> None:
    """An entry that an earlier one surely includes is reported: an equal one, a matching name, or all names."""
    teams = (
        Team(name="a", clients=(Clients(user="alice"), Clients(user_pattern="b.*", client_id="x"))),
        Team(name="b", clients=(Clients(user="alice", client_id="y"), Clients(user_pattern="alice"))),
        Team(
            name="c", clients=(Clients(user="bob", client_id="x"), Clients(user="bob"), Clients(client_id_pattern="z+"))
        ),
        Team(name="d", clients=(Clients(client_id_pattern="z+", user="zoe"), Clients(user_pattern=".*"))),
        Team(name="e", clients=(Clients(client_id="w"),)),
    )
    assert [(entry.place, entry.by_place) for entry in shadowed(teams)] == [
        ("teams[1].clients[0]", "teams[0].clients[0]"),
        ("teams[2].clients[0]", "teams[0].clients[1]"),
        ("teams[3].clients[0]", "teams[2].clients[2]"),
        ("teams[4].clients[0]", "teams[3].clients[1]"),
    ]


NAMES = st.sampled_from(["", "a", "ab", "b", "a\nb", "\ud800", "long:1", "long:2", "中"])
PATTERNS = st.sampled_from(["a.*", ".*b", ".*", "a|b", "", "long:.*", ".", "(?i)A"])
CONDITIONS = st.one_of(
    st.none(), st.builds(lambda name: (name, None), NAMES), st.builds(lambda pattern: (None, pattern), PATTERNS)
)


@st.composite
def clients(draw: st.DrawFn) -> Clients:
    """Return conditions on both dimensions, or on one."""
    user, client_id = draw(st.tuples(CONDITIONS, CONDITIONS).filter(any))
    (name, pattern), (other_name, other_pattern) = user or (None, None), client_id or (None, None)
    return Clients(user=name, user_pattern=pattern, client_id=other_name, client_id_pattern=other_pattern)


TEAMS = st.lists(st.lists(clients(), min_size=1, max_size=3), max_size=5)


def remembered(name: str) -> str | None:
    """Return the real name of one that was cut; None of one that is not remembered."""
    return None if name == "long:2" else name


def _verdict(name: str | None, pattern: str | None, candidate: str) -> bool | None:
    if name is not None:
        return name == candidate
    if pattern in {None, ".*"}:
        return True
    real = remembered(candidate)
    return None if real is None else matcher(str(pattern))(real)


def slowly(entries: list[list[Clients]], user: str, client_id: str) -> str:
    """Return the team by comparing one entry after the other."""
    for number, team in enumerate(entries):
        for one in team:
            verdicts = (
                _verdict(one.user, one.user_pattern, user),
                _verdict(one.client_id, one.client_id_pattern, client_id),
            )
            if False not in verdicts:
                return UNDECIDED if None in verdicts else str(number)
    return UNOWNED


@given(TEAMS, NAMES, NAMES)
@example([[Clients(user_pattern=".*", client_id="a")], [Clients(user_pattern=".*")]], "long:2", "a")
def test_the_first_team_with_an_entry_that_matches(entries: list[list[Clients]], user: str, client_id: str) -> None:
    """A client's team is the first with a matching entry, or undecided for a name that is not remembered."""
    teams = [Team(name=str(number), clients=tuple(team)) for number, team in enumerate(entries)]
    assert TeamFinder(teams, remembered).label(user, client_id) == slowly(entries, user, client_id)


def test_patterns_that_take_too_much_memory_together_match_one_by_one() -> None:
    """A set of patterns that RE2 refuses has the answers of its members."""
    patterns = [f"{letter}{{0,500}}.{{0,500}}x{number}" for number in range(30) for letter in "abc"]
    together = PatternSet(patterns)
    assert [*together.matching("aaax7")] == [patterns.index("a{0,500}.{0,500}x7") + place for place in range(3)]
    assert [*together.matching("y")] == []


def test_a_wrong_pattern_of_a_set_is_named() -> None:
    """A wrong pattern of a set is named as a single one is."""
    with pytest.raises(ValueError, match=r"'\(' is not an RE2 expression"):
        PatternSet(["a", "("])
