"""`quotascope cost`: its options, months, clusters and outputs."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.pipeline.cost.logs import moved, stored

TEAMS = """
currency: EUR
teams:
- {team: payments, contact: "#pay", clients: [{user: alice}], price_per_gb_in: 0.05, price_per_gb_out: 0.1}
- {team: etl, clients: [{user_pattern: spark.*}]}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with teams and the history of a cluster."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "teams.yaml").write_text(TEAMS)
    stored(
        tmp_path / "usage",
        moved("2025-11-02T10:00:00", "alice", produced=4 * 10**9),
        moved("2025-11-02T10:01:00", "alice", fetched=10**9),
        moved("2025-11-02T10:02:00", "spark-7", fetched=5 * 10**9),
        moved("2025-11-02T10:03:00", "eve", produced=7),
        moved("2025-12-01T00:00:00", "alice", produced=10**9),
    )
    return tmp_path


def test_it_writes_all_forms_of_one_answer(run: Run, here: Path) -> None:
    """Table, page, CSV and JSON have the same costs."""
    files = ("--html", "cost.html", "--csv", "cost.csv", "--json-file", "cost.json")
    code, out, err = run("cost", "usage", "--month", "2025-11", "--teams", "teams.yaml", *files)
    assert (code, err) == (0, "")
    page = (here / "cost.html").read_text()
    for text in (out, page):
        assert "Cost of November 2025" in text
        assert "0.30 EUR" in text
        assert "no team" in text
    rows = list(csv.DictReader(io.StringIO((here / "cost.csv").read_text())))
    assert [(row["SubAccountId"], row["SkuId"], row["BilledCost"]) for row in rows] == [
        ("payments", "kafka-produce", "0.2"),
        ("payments", "kafka-fetch", "0.1"),
        ("etl", "kafka-fetch", ""),
        ("__unowned__", "kafka-produce", ""),
    ]
    assert json.loads((here / "cost.json").read_text())["total"] == "0.3"


def test_clusters_have_the_names_that_are_given(run: Run, here: Path) -> None:
    """Clusters have the names of the options, in the order of the folders, or else the folders' names."""
    stored(here / "us" / "usage", moved("2025-11-02T10:00:00", "alice", produced=10**9))
    base = ("cost", "usage", "us/usage", "--month", "2025-11", "--teams", "teams.yaml", "--json")
    code, _, err = run(*base)
    assert code == 2
    assert "two clusters are named 'usage'" in err
    code, out, _ = run(*base, "--cluster-name", "eu", "--cluster-name", "us")
    assert code == 0
    assert [(one["cluster"], one["total"]) for one in json.loads(out)["clusters"]] == [("eu", "0.3"), ("us", "0.05")]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("usage --teams teams.yaml --month 2025-13", "'2025-13' is not a month such as 2026-11"),
        ("usage --teams teams.yaml --month 9000-01", "January 9000 has not begun"),
        ("usage --month 2025-11", "is needed, or `teams` in --config"),
        ("--month 2025-11 --teams teams.yaml", "give one of them"),
        ("usage --prometheus http://127.0.0.1:9 --teams teams.yaml", "give one of them"),
        ("--prometheus http://127.0.0.1:9 --days 3 --teams teams.yaml", "the period is the month"),
        ("usage --teams teams.yaml --counters", "needs --prometheus"),
        ("--prometheus http://127.0.0.1:9 --counters --series agents --teams teams.yaml", "give one of them"),
        ("usage --teams teams.yaml --cluster-name a --cluster-name b", "there are 2 names for 1 clusters"),
        ("usage --teams teams.yaml --cluster-name ''", "a name is needed"),
        ("usage --teams teams.yaml --provider ' '", "a name is needed"),
    ],
)
def test_options_that_say_nothing_are_refused(run: Run, arguments: str, expected: str) -> None:
    """Options without effect are refused by name, before anything is read."""
    code, out, err = run("cost", *shlex.split(arguments))
    assert (code, out) == (2, "")
    assert expected in err


def test_prices_without_a_currency_are_refused(run: Run, here: Path) -> None:
    """Prices without a currency are refused with a message that says what to write."""
    (here / "teams.yaml").write_text(TEAMS.replace("currency: EUR", ""))
    code, _, err = run("cost", "usage", "--month", "2025-11", "--teams", "teams.yaml")
    assert code == 1
    assert "write `currency: EUR`" in err
