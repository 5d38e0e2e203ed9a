"""Usage of teams from a history: names for people, and how much of it is missing."""

from __future__ import annotations

import csv
import io

import pytest
from tests.exporter.examples import team

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.report import Rows
from quotascope.pipeline.losses import Losses, Steps
from quotascope.pipeline.runs.usage import ClientUsage, Usage, as_csv, by_team, document, report
from quotascope.quotas.team_finder import TeamFinder

RED = team("red", user_pattern="r.*")
LOSSES = Losses(
    clients={
        ("1", "rose", "a"): Steps(100, 80),
        ("1", "ruth", "a"): Steps(100, 50),
        ("1", "rita", "a"): Steps(100, 100),
    },
    requests={"1": 300},
)
UNDECIDED = {("1", "rahel", "a"): Steps(100, 60)}


def of_teams(*users: str, losses: Losses = LOSSES) -> Usage:
    """Return the usage of the team red and of no team, by clients with equal usage."""
    clients = [ClientUsage(user, "a", QuotaType.PRODUCE, amount=10, requests=1) for user in users]
    usage = Usage("usage", 0, 60_000, clients, {"produce": 10 * len(users)}, {}, losses)
    return by_team(usage, TeamFinder((RED,)))


@pytest.mark.parametrize(
    ("users", "share", "used"),
    [
        (("rose", "ruth", "rita"), 0.5, "≥ 30 B"),
        (("ruth", "rose"), 0.5, "≥ 20 B"),
        (("rose", "rita"), 0.2, "≥ 20 B"),
        (("rita",), 0.0, "10 B"),
    ],
)
def test_a_team_lacks_what_its_worst_client_lacks(users: tuple[str, ...], share: float, used: str) -> None:
    """The share is in JSON and CSV, as for clients, and the amount is a lower bound."""
    usage = of_teams(*users)
    (row,) = document(usage)["clients"]
    assert (row["team"], row["missing_share"]) == ("red", pytest.approx(share))
    (line,) = csv.DictReader(io.StringIO(as_csv(usage)))
    assert float(line["missing_share"]) == pytest.approx(share)
    table = report(usage).blocks[0]
    assert isinstance(table, Rows)
    assert str(table.rows[0][1]) == used


def test_what_is_unknown_of_a_client_is_unknown_of_its_team() -> None:
    """A team's figure is null if it is unknown of one of its clients, and other teams show no loss."""
    whole = Losses(clients={("1", "rita", "a"): Steps(100, 100)}, undecided=UNDECIDED, requests={"1": 100})
    (row,) = document(of_teams("rita", "rahel", losses=whole))["clients"]
    assert row["missing_share"] is None
    lossy = Losses(clients={("1", "rose", "a"): Steps(10, 8)}, undecided=UNDECIDED, requests={"1": 10})
    (row,) = document(of_teams("rose", "rahel", losses=lossy))["clients"]
    assert row["missing_share"] == pytest.approx(0.2)
    (row,) = document(of_teams("rita", losses=Losses(has_numbers=False, requests={"1": 3})))["clients"]
    assert row["missing_share"] is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t\n\x1b[2J\u202e", "t\\n\\x1b[2J\\u202e"),
        ("no team", '"no team"'),
        ("x" * 200, "x" * 200),
        ("crew 7", "crew 7"),
    ],
)
def test_a_hostile_name_is_one_safe_line(name: str, text: str) -> None:
    """A hostile name is one safe line in a terminal and never taken for "no team"; JSON has it unchanged."""
    clients = [ClientUsage("eve", "a", QuotaType.PRODUCE, amount=10, requests=1)]
    usage = by_team(Usage("usage", 0, 60_000, clients, {"produce": 10}, {}), TeamFinder((team(name, user="eve"),)))
    table, topics = report(usage).blocks[:2]
    assert isinstance(table, Rows)
    assert table.rows[0][0] == text
    assert topics.title == f"{text}: produce"
    assert document(usage)["clients"][0]["team"] == name
