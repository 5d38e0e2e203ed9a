"""Usage of clients and topics from a history, in numbers, words, JSON and on the page."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.builders.requests import START_MS
from tests.cli.conftest import Run
from tests.pipeline.history.requests import requests
from tests.pipeline.log_lines import CAPTURE
from tests.pipeline.report.reader import HARMLESS, PLAIN, Reader
from tests.pipeline.table.rows import append

from quotascope.pipeline.columns import added
from quotascope.pipeline.history import History
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.names import DETAIL, NAMES
from quotascope.pipeline.runs import usage as question
from quotascope.pipeline.table.storage import DAY_MS

HOSTILE = "<script>alert('hit')</script>\n\x1b[2J\u202e&amp;" + "x" * 300
HOUR = 3_600_000


def moved(
    user: str, key: int, *topics: tuple[str | None, str | None, int], more: int = 0, at: int = 0, **changed: Any
) -> dict[str, Any]:
    """Return a Produce or Fetch of topics, with so many bytes of protocol."""
    size = sum(held for _, _, held in topics) + more
    row = {
        "user": user,
        "api_key": key,
        "timestamp": START_MS + at,
        "completed": START_MS + at,
        "produce_bytes": size if key == 0 else None,
        "fetch_bytes": size if key == 1 else None,
        "traffic": [{"topic": name, "id": number, "bytes": held} for name, number, held in topics],
    }  # fmt: skip
    return row | changed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A history with topics by name, by id with a name logged long before and none, and bytes of unknown topics."""
    day = -24 * HOUR
    rows = [
        {
            "user": "carol", "timestamp": START_MS + day, "completed": START_MS + day,
            "topic_ids": [{"topic": "orders", "id": "i1"}],
        },
        moved("alice", 0, ("orders", None, 700), ("logs", None, 200), more=100),
        moved("alice", 0, ("orders", None, 100), at=HOUR),
        moved("bob", 1, (None, "i1", 500), (None, "i2", 50), more=50),
        moved("bob", 1, throttle_ms=40, fetch_bytes=None, traffic=None),
        moved("dave", 1, throttle_ms=40, fetch_bytes=None, traffic=None),
        moved("erin", 0, traffic=None, produce_bytes=5_000),
        {"user": "carol", "api_key": 20, "mutations_known": False},
        moved(HOSTILE, 0, (HOSTILE, None, 1), client_id=HOSTILE),
    ]  # fmt: skip
    source = IngestTables.create(str(tmp_path)).requests
    append(source, "0", requests(*rows))
    History.create(str(tmp_path)).update(source)
    return tmp_path


def asked(run: Run, *arguments: object) -> dict[tuple[str, str], dict[str, Any]]:
    code, out, _ = run("usage", *arguments, "--json")
    assert code == 0
    return {(client["user"], client["quota_type"]): client for client in json.loads(out)["clients"]}


def test_numbers(run: Run, folder: Path) -> None:
    """Usage has bytes by topic, protocol overhead, and unknown figures that are not zero."""
    clients = asked(run, folder)
    figures = {
        key: (client["amount"], client["requests"], client["requests_of_unknown_size"], client["topics"],
             client["protocol"], client["unknown_topics"])
        for key, client in clients.items()
        if key[1] in ("produce", "fetch")
    }  # fmt: skip
    assert figures == {
        ("alice", "produce"): (1_100, 2, 0, {"orders": 800, "logs": 200}, 100, 0),
        ("bob", "fetch"): (600, 1, 1, {"orders": 500, "id:i2": 50}, 50, 0),
        ("dave", "fetch"): (None, 0, 1, {}, 0, 0),
        ("erin", "produce"): (5_000, 1, 0, {}, 0, 5_000),
        (HOSTILE, "produce"): (1, 1, 0, {HOSTILE: 1}, 0, 0),
    }
    assert clients["carol", "request"]["amount"] == 1_500
    mutations = clients["carol", "controller_mutation"]
    assert (mutations["amount"], mutations["requests_of_unknown_size"]) == (None, 1)


@pytest.mark.parametrize(
    ("chosen", "amounts"),
    [
        (["--user", "alice"], {("alice", "produce"): 1_100}),
        (["--client-id", HOSTILE], {(HOSTILE, "produce"): 1}),
        (["--user", "alice", "--begin", "2023-11-14T22:30:00Z"], {("alice", "produce"): 100}),
        (["--user", "bob", "--end", "2023-11-15T00:00:00", "--time-zone", "Europe/Berlin"], {("bob", "fetch"): 600}),
        (["--user", "bob", "--end", "2023-11-14T20:00:00"], {}),
        (["--user", "mallory"], {}),
        (["--user", "\udcff"], {}),
    ]
)  # fmt: skip
def test_part_of_a_history(run: Run, folder: Path, chosen: list[str], amounts: dict[tuple[str, str], int]) -> None:
    """Usage can be of a user, also of one that is no UTF-8, of a client-id, and of a period."""
    clients = asked(run, folder, *chosen)
    assert {key: client["amount"] for key, client in clients.items() if key[1] != "request"} == amounts
    if ("bob", "fetch") in clients:
        assert "orders" in clients["bob", "fetch"]["topics"]


def test_a_share_is_of_all_clients(run: Run, folder: Path) -> None:
    """A share is of all clients, whichever of them are shown."""
    shares = {}
    for chosen in ((), ("--user", "alice")):
        _, out, _ = run("usage", folder, *chosen)
        produce = out[out.index("Produce") :].splitlines()
        line = next(line for line in produce if "alice / app" in line)
        shares[chosen] = line.split()[3:7]
    assert shares[()] == shares["--user", "alice"]
    _, out, _ = run("usage", folder, "--user", "alice", "--json")
    of_all = json.loads(out)
    assert of_all["totals"]["produce"] == 6_101
    assert of_all["requests_of_unknown_size"] == {"fetch": 2, "controller_mutation": 1}


def test_topics_of_others_are_not_kept_apart(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usage of a client takes no memory and time for the topics of other clients."""
    source = IngestTables.create(str(folder)).requests
    other_rows = [moved(f"u{number}", 0, (f"t{number}", None, 1), at=number) for number in range(500)]
    append(source, "others", requests(*other_rows))
    History.create(str(folder)).update(source)
    lengths = []

    def noted(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
        sums = added(rows, keys)
        lengths.append(len(sums))
        return sums

    monkeypatch.setattr(question, "added", noted)
    assert asked(run, folder, "--user", "alice")["alice", "produce"]["topics"] == {"orders": 800, "logs": 200}
    assert max(lengths) < 20
    assert len(asked(run, folder)) > 500


@pytest.mark.parametrize("table", ["seconds", "history"])
def test_days_of_which_one_table_is_left(run: Run, folder: Path, table: str) -> None:
    """Lost sums are computed from requests, as for a replay; days with sums only belong to the period of mean rates."""
    _, old_output, _ = run("usage", folder, "--json")
    assert run("history", "drop", folder, "--before", "2023-11-16", "--table", table)[0] == 0
    assert run("usage", folder, "--json")[:2] == (0, old_output)


def test_days_of_which_only_the_topics_are_left(run: Run, folder: Path) -> None:
    """Shares of days of which only the topics are left are of the known bytes, and unknown without any."""
    source = IngestTables.create(str(folder)).requests
    append(source, "later", requests(moved("zoe", 0, ("t", None, 1), at=48 * HOUR)))
    History.create(str(folder)).update(source)
    tables = ("--table", "seconds", "--table", "history")
    assert run("history", "drop", folder, "--before", "2023-11-16", *tables)[0] == 0
    code, out, _ = run("usage", folder, "--begin", "2023-11-14", "--by-topic")
    assert code == 0
    assert "100 %" in out


@pytest.mark.parametrize("span", [("--end", "2020-01-01"), ("--begin", "2030-01-01")])
def test_a_period_beside_the_history(run: Run, folder: Path, span: tuple[str, str]) -> None:
    """A period without requests does not end before it begins."""
    _, out, _ = run("usage", folder, *span, "--json")
    document = json.loads(out)
    assert document["clients"] == []
    assert document["begin_ms"] <= document["end_ms"]


def test_tables(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each quota type has a table of clients, and each client a table of topics; unknown values are no numbers."""
    monkeypatch.setenv("COLUMNS", "110")
    _, out, _ = run("usage", folder, "--by-topic", "--time-zone", "Europe/Berlin")
    assert "2023-11-13 23:13:20 CET to 2023-11-15 00:13:21 CET" in " ".join(out.split())
    words = [" ".join(line.split()) for line in out.splitlines()]
    produce, fetch, request = map(words.index, ("Produce", "Fetch", "Request"))
    assert produce < words.index("alice / app 1.1 kB 18 % 0.0122 B/s 2") < fetch
    topics = words.index("alice / app: produce")
    rows = [line for line in words[topics:] if line.endswith(" %")]
    assert rows[:3] == ["orders 800 B 73 %", "logs 200 B 18 %", "protocol overhead 100 B 9.1 %"]
    assert fetch < words.index("bob / app ≥ 600 B unknown ≥ 0.00667 B/s 1 + 1 unknown") < request
    assert fetch < words.index("dave / app unknown unknown unknown 0 + 1 unknown") < request
    assert produce < words.index("erin / app 5 kB 82 % 0.0556 B/s 1") < fetch
    topics = words.index("erin / app: produce")
    assert "unknown topics 5 kB 100 %" in words[topics:fetch]
    assert "\x1b[2J" not in out
    _, out, _ = run("usage", folder, "--top", 1)
    assert "and 2 more: --json has all" in out
    assert out.count(" more: ") == 3
    _, out, _ = run("usage", folder, "--user", "mallory")
    assert "The history has no request of these clients in this period." in out


def test_csv_has_the_rows_of_json(run: Run, folder: Path) -> None:
    """CSV has a row for each client and quota type; unknown and inapplicable values are empty."""
    code, out, _ = run("usage", folder, "--csv", "-")
    rows = {(row["user"], row["quota_type"]): row for row in csv.DictReader(io.StringIO(out))}
    clients = asked(run, folder)
    assert (code, len(rows)) == (0, len(clients))
    assert rows["dave", "fetch"]["amount"] == rows["carol", "request"]["protocol"] == ""
    for (user, quota_type), client in clients.items():
        if user != HOSTILE and client["amount"] is not None:
            assert int(rows[user, quota_type]["amount"]) == client["amount"]
    assert json.loads(rows[json.dumps(HOSTILE), "produce"]["user"]) == HOSTILE


def test_page(run: Run, folder: Path) -> None:
    """The page shows names as text, and says which figures are unknown."""
    page = folder / "usage.html"
    assert run("usage", folder, "--html", page)[0] == 0
    reader = Reader(page.read_text())
    assert reader.kinds <= PLAIN
    assert reader.attributes <= HARMLESS | {"viewbox", "fill", "preserveaspectratio"}
    for text in (
        "bob / app: fetch",
        "id:|i2",
        "unknown topics",
        "≥ 600 B",
        "<script>alert('hit')</script>\\n\\x1b[2J\\u202e&amp;",
    ):
        assert text in reader.text
    assert run("usage", folder, "--html", page, "--user", "dave")[0] == 0
    assert page.read_text().count('class="share"') == 1  # of its request time


def test_a_real_log(run: Run, tmp_path: Path) -> None:
    """The topic of a real log is known by its name in Produce requests and by its id in Fetch requests."""
    assert run("ingest", CAPTURE, "--broker", 1, "--into", tmp_path / "usage")[0] == 0
    clients = asked(run, tmp_path / "usage")
    moved = [client for client in clients.values() if "topics" in client]
    assert {(name, client["unknown_topics"]) for client in moved for name in client["topics"]} == {("t1", 0)}
    assert clients["carol", "fetch"]["requests_of_unknown_size"] == 13
    _, out, _ = run("usage", tmp_path / "usage", "--user", "bob")
    assert " 110 mut " in out


@pytest.mark.parametrize("command", ["usage", "blame"])
def test_a_page_and_json_are_not_mixed(command: str, run: Run, folder: Path) -> None:
    """A page and JSON cannot both be written to standard output."""
    code, out, err = run(command, folder, "--html", "-", "--json")
    assert (code, out) == (1, "")
    assert "two outputs cannot be one file" in err


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A folder with two requests in two pieces, and their history."""
    tables = IngestTables.create(str(tmp_path))
    history = History.create(str(tmp_path))
    for number in range(2):
        append(tables.requests, f"{number}", requests({}))
        history.update(tables.requests)
    return str(tmp_path)


def test_a_folder_is_looked_after(small: str, run: Run) -> None:
    """Commands show, merge, shorten and clean the tables of a folder, and each says what it did."""
    steps = {
        ("status", small): "2023-11-14 to 2023-11-14",
        ("status", small, "--json"): '"first_day": "2023-11-14"',
        ("compact", small, "--engine", "local"): "8 files merged",
        ("drop", small, "--before", "2024-01-01", "--table", "seconds"): "2 rows before 2024-01-01 dropped",
        ("drop", small, "--keep-days", "30"): "6 rows before ",
        ("clean", small, "--older-than", "0", "--force"): "12 files deleted",
        ("repair", small): "nothing is lost in 0 files",
    }  # fmt: skip
    for step, output in steps.items():
        code, out, _ = run("history", *step)
        assert code == 0
        assert output in out


def test_what_a_folder_holds_is_known_from_its_logs(small: str, run: Run) -> None:
    """The logs of a folder's tables give rows, files, days and the result of a compaction."""
    tables, later = IngestTables.create(small), START_MS + DAY_MS
    append(tables.requests, "later", requests({"timestamp": later, "completed": later}))
    History.open(small).update(tables.requests)
    _, out, _ = run("history", "status", small, "--json")
    states = {state["table"]: state for state in json.loads(out)}
    assert list(states) == ["requests", "quarantine", "history", "seconds", "topics", "connections", "episodes"]
    history = states["history"]
    assert (history["rows"], history["files"], history["files_after_compaction"]) == (3, 3, 2)
    assert (history["first_day"], history["last_day"]) == ("2023-11-14", "2023-11-15")
    assert history["bytes"] > 0
    assert states["quarantine"]["first_day"] is None


def test_mistakes_are_reported(small: str, run: Run) -> None:
    """An unknown table, two ways to name a day, and a folder without tables are one message each."""
    steps = {
        ("drop", small, "--keep-days", "3", "--table", "days"): "'days' is none of requests",
        ("drop", small, "--keep-days", "999999999"): "--keep-days",
        ("clean", small, "--older-than", "999999999999"): "--older-than",
        ("clean", small, "--older-than", "0"): "--older-than",
        ("drop", small, "--before", "2199-01-01"): "must not be in the future",
        ("drop", small): "give one of --before and --keep-days",
        ("status", f"{small}/nothing"): (
            "/nothing: there is no such folder; `quotascope ingest LOGS --into FOLDER` makes"
        ),
    }  # fmt: skip
    for step, output in steps.items():
        code, _, err = run("history", *step)
        assert code in (1, 2)
        assert output in err


def test_lost_files_are_said_before_they_are_taken_out(small: str, run: Run) -> None:
    """The exit code is 1 until `--apply`; with the rows that are lost, and of when."""
    table = IngestTables.create(small).requests
    Path(table.storage.uri, table.files()[0].path).unlink()
    code, out, _ = run("history", "repair", small)
    assert code == 1
    assert "it is gone); taken out; 1 rows lost, from 2023-11-14 22:13:20 UTC to" in out
    assert "Nothing was changed" in out
    code, out, _ = run("history", "repair", small, "--apply", "--json")
    assert (code, [table["table"] for table in json.loads(out)][:2]) == (0, ["requests", "history"])
    assert run("history", "repair", small)[0] == 0


def test_sums_by_user(run: Run, tmp_path: Path) -> None:
    """Client-ids that change with each run are one row, with topics and unknown figures summed."""
    rows = [
        moved("etl", 0, ("orders", None, 700), more=100, client_id="spark-1"),
        moved("etl", 0, ("orders", None, 200), ("logs", None, 50), client_id="spark-2"),
        moved("etl", 1, client_id="spark-2", throttle_ms=40, fetch_bytes=None, traffic=None),
        moved("alice", 0, ("orders", None, 10), client_id="a"),
    ]
    source = IngestTables.create(str(tmp_path)).requests
    append(source, "0", requests(*rows))
    History.create(str(tmp_path)).update(source)
    code, out, _ = run("usage", tmp_path, "--by-user", "--json")
    assert code == 0
    clients = {(row["user"], row["quota_type"]): row for row in json.loads(out)["clients"]}
    total = clients["etl", "produce"]
    assert (total["client_id"], total["amount"], total["requests"]) == (None, 1_050, 2)
    assert (total["topics"], total["protocol"]) == ({"orders": 900, "logs": 50}, 100)
    assert clients["etl", "fetch"]["requests_of_unknown_size"] == 1
    assert clients["alice", "produce"]["amount"] == 10
    code, out, _ = run("usage", tmp_path, "--by-user")
    assert code == 0
    assert "user etl" in out
    assert "spark-1" not in out
    page = tmp_path / "usage.html"
    run("usage", tmp_path, "--by-user", "--html", page)
    assert "spark-1" not in page.read_text()


def test_sums_by_team(run: Run, tmp_path: Path) -> None:
    """A client belongs to the first team that matches; the rest is one row, in a terminal, as JSON and as CSV."""
    rows = [
        moved("etl", 0, ("orders", None, 700), more=100, client_id="spark-1"),
        moved("bob", 0, ("logs", None, 50), client_id="spark-2"),
        moved("alice", 0, ("orders", None, 10), client_id="a"),
    ]
    source = IngestTables.create(str(tmp_path)).requests
    append(source, "0", requests(*rows))
    History.create(str(tmp_path)).update(source)
    teams = tmp_path / "teams.yaml"
    teams.write_text("teams: [{team: jobs, clients: [{client_id_pattern: spark-.*}]}]")
    code, out, errors = run("usage", tmp_path, "--teams", teams, "--json")
    assert code == 0, errors
    of_teams = {(row["team"], row["quota_type"]): row for row in json.loads(out)["clients"]}
    assert "user" not in of_teams["jobs", "produce"]
    assert (of_teams["jobs", "produce"]["amount"], of_teams["__unowned__", "produce"]["amount"]) == (850, 10)
    assert of_teams["jobs", "produce"]["topics"] == {"orders": 700, "logs": 50}
    _, out, _ = run("usage", tmp_path, "--teams", teams)
    assert "jobs" in out
    assert "no team" in out
    assert "spark" not in out
    table = tmp_path / "usage.csv"
    run("usage", tmp_path, "--teams", teams, "--csv", table)
    assert table.read_text().startswith("team,quota_type,amount")
    code, _, errors = run("usage", tmp_path, "--teams", teams, "--by-user")
    assert (code, "excludes --by-user" in errors) == (2, True)
    teams.write_text("teams: [{team: jobs}]")
    code, _, errors = run("usage", tmp_path, "--teams", teams)
    assert (code, "teams[0].clients must be a list" in errors) == (1, True)


def test_the_tables_of_a_history_are_named_in_help(run: Run) -> None:
    """Help lists all values of `--table`, and the tables that are dropped without it."""
    _, out, _ = run("history", "drop", "--help")
    words = " ".join(out.replace("│", " ").split())
    assert f"One of {', '.join(NAMES)}" in words
    assert f"[default: ({', '.join(DETAIL)})]" in words
