"""`quotascope episodes`: what it shows of a history and of an exporter, and what it does not claim."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from http.server import ThreadingHTTPServer
from math import inf
from pathlib import Path
from shutil import rmtree
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from structlog.testing import capture_logs
from tests.builders.requests import START_MS
from tests.cli.conftest import Run
from tests.cli.usages import reported
from tests.exporter.examples import NOW, health, limits, snapshot, usage
from tests.pipeline.history.requests import requests
from tests.pipeline.table.rows import append
from tests.servers import Handler, served

from quotascope.cli.episodes import report, summed_by_user
from quotascope.exporter.api.answers import episodes_document
from quotascope.exporter.api.client import read_episodes
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.diagnosis.episodes import Episodes
from quotascope.exporter.page.query import EpisodeQuery
from quotascope.exporter.snapshot import EntityUsage
from quotascope.exporter.sources.peer import HttpTarget
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.pipeline.history import History, history_of
from quotascope.pipeline.history.charges import COLUMNS
from quotascope.pipeline.ingest import IngestTables
from quotascope.pipeline.runs.episodes import find_episodes
from quotascope.pipeline.table import Follower, follow

START = START_MS / 1_000
QUARTER = 900.0
LOG = Path(__file__).parents[1] / "pipeline" / "captures" / "kafka-4.4.0-month-request.log"
BERLIN = ("x", "--time-zone", "Europe/Berlin")
HOSTILE = "a\n\x1b[2J<b>" + "x" * 300
QUOTAS = """
quotas:
  - {user: alice, producer_byte_rate: 1000}
  - {user: <default>, request_percentage: 5}
"""


def written(folder: Path, *changes: tuple[float, dict[str, Any]]) -> None:
    """Write a history of Produce requests at times after the start."""
    source = IngestTables.create(str(folder)).requests
    times = [START_MS + round(1_000 * time) for time, _ in changes]
    rows = (
        {"api_key": 0, "timestamp": time, "completed": time, **change}
        for time, (_, change) in zip(times, changes, strict=True)
    )
    append(source, f"{source.version}", requests(*rows))
    History.create(str(folder)).update(source)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two hours of a broker: no request in the second quarter, and alice throttled for four minutes in the third."""
    quarters = [(QUARTER * number, {"user": "carol"}) for number in range(8) if number != 1]
    slow = [(2 * QUARTER + 60.0 * number, {"throttle_ms": 500 * number}) for number in range(1, 5)]
    mallory = (7 * QUARTER, {"user": HOSTILE, "client_id": HOSTILE, "api_key": 3, "throttle_ms": 7})
    written(tmp_path, *quarters, *slow, mallory)
    (tmp_path / "quotas.yaml").write_text(QUOTAS)
    return tmp_path


def asked(run: Run, *arguments: object) -> dict[str, Any]:
    code, out, err = run("episodes", *arguments, "--json")
    assert (code, err) == (0, "")
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_when_was_alice_throttled(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    An episode has its times, requests and throttle time, and its rule if quotas are known, as the log names none.

    80 columns have room for when, who, where, how long and how much, with the rules below.
    """
    (episode,) = asked(run, folder, "--user", "alice")["episodes"]
    assert episode == {
        "user": "alice", "client_id": "app", "broker": "1", "quota_type": "produce",
        "began_at": START + 2 * QUARTER + 60, "ended_at": START + 2 * QUARTER + 242,
        "ongoing": False, "throttled_requests": 4, "throttle_seconds": 5.0, "longest_throttle_seconds": 2.0,
        "rules": None,
    }  # fmt: skip
    quotas = "--quotas", folder / "quotas.yaml"
    (episode,) = asked(run, folder, "--user", "alice", *quotas)["episodes"]
    # its requests are of unknown size, and took hardly any time
    assert episode["rules"] == ["produce 3 user alice"]
    _, out, _ = run("episodes", folder, "--user", "alice", "--time-zone", "Europe/Berlin")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "times are in Europe/Berlin" in lines
    row = lines.index("2023-11-14 23:44:20 3 min 2 s alice / app 1 produce 4 5 s 2 s")
    assert lines[row + 1] == "unknown rule"
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("episodes", folder, "--user", "alice", *quotas)
    lines = [line.rstrip() for line in out.splitlines()]
    row = lines.index("alice / app")
    assert lines[row : row + 4] == [
        "alice / app",
        " 3 user alice",
        "  from: 2023-11-14 22:44:20   length: 3 min 2 s   node: 1   quota: produce",
        "  requests: 4   total: 5 s   longest: 2 s",
    ]
    assert "times are in UTC" in lines


def test_an_infinite_quota_throttles_no_request(folder: Path, run: Run) -> None:
    """
    An infinite quota is not among the rules that may have throttled, though it takes precedence.

    An exporter reports a throttle of the last minute, whose quota may be infinite by now. The quotas of a file need no
    cluster, also where the configuration names one.
    """
    (folder / "infinite.yaml").write_text(QUOTAS.replace("rate: 1000", "rate: 1000, request_percentage: Infinity"))
    rules = limits(rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity("alice"): inf})})
    with answering((0, [usage(configured=rules, throttle_time_seconds=0.5)])) as url:
        for arguments, expected in (
            ((folder, "--quotas", folder / "infinite.yaml"), ["produce 3 user alice"]),
            (
                (folder, "--quotas", folder / "quotas.yaml", "--bootstrap-servers", "127.0.0.1:9"),
                ["produce 3 user alice"],
            ),
            (("--exporter", url), []),
        ):
            (episode,) = asked(run, *arguments, "--user", "alice")["episodes"]
            assert episode["rules"] == expected


@pytest.mark.parametrize(
    ("used", "rules"),
    [
        # a tenth of the limit of bytes, and more request time than allowed
        ({"produce_bytes": 100, "thread_time_ms": 900.0}, ["request 6 user <default>"]),
        # bytes above their limit, and hardly any request time
        ({"produce_bytes": 90_000, "thread_time_ms": 0.1}, ["produce 3 user alice"]),
        # both above
        ({"produce_bytes": 90_000, "thread_time_ms": 900.0}, ["produce 3 user alice", "request 6 user <default>"]),
        # of unknown size
        ({"thread_time_ms": 900.0}, ["produce 3 user alice", "request 6 user <default>"]),
        # neither: the quotas of the file are not those of the time
        ({"produce_bytes": 100, "thread_time_ms": 0.1}, ["produce 3 user alice", "request 6 user <default>"]),
    ],
)
def test_quotas_that_were_hardly_used_did_not_throttle(
    run: Run, tmp_path: Path, used: dict[str, Any], rules: list[str]
) -> None:
    """A quota is not named if the clients that it counts together used little of it in each window of the episode."""
    slow: list[tuple[float, dict[str, Any]]] = [(float(second), {**used, "throttle_ms": 100}) for second in range(20)]
    # of another hour, of another user
    other_requests: list[tuple[float, dict[str, Any]]] = [
        (7_200.0, {"produce_bytes": 10**9}),
        (3.0, {"user": "carol", "produce_bytes": 10**9}),
    ]
    written(tmp_path, *slow, *other_requests)
    (episode,) = asked(run, tmp_path, "--user", "alice", "--quotas", quotas_file(tmp_path))["episodes"]
    assert episode["rules"] == rules


@pytest.mark.parametrize("width", [40, 80, 84, 106, 120])
def test_no_number_is_cut(width: int) -> None:
    """Names are folded, however long the throttle and the id of its node are."""
    episode = {
        "user": "x" * 300, "client_id": "app", "broker": "2147483647", "quota_type": "controller_mutation",
        "began_at": 1_700_000_000.0, "ended_at": 1_700_086_399.0,
        "ongoing": True, "throttled_requests": 1_234_567, "throttle_seconds": 86_399.0,
        "longest_throttle_seconds": 1_234.5, "rules": ["3 user alice"],
    }  # fmt: skip
    answer = {"begin": 0.0, "end": 1.8e9, "throttled": True, "not_covered": [], "episodes": [episode]}
    of_brokers, table = (reported(report(answer, "usage", UTC, sums=sums), width) for sums in (True, False))
    for drawn in (of_brokers, table):
        assert all(text in drawn for text in ("20 min 34 s", "2147483647", "3 user alice", " 23 h 59 min "))
    assert "1,234,567" in table
    assert "requests" not in of_brokers


def test_episodes_outlive_the_requests_that_were_dropped(folder: Path, run: Run) -> None:
    """Episodes of dropped requests are still listed; times without requests are not covered."""
    episodes_before = asked(run, folder)["episodes"]
    assert run("history", "drop", folder, "--before", "2023-11-20")[0] == 0
    answer = asked(run, folder)
    assert answer["episodes"] == episodes_before
    assert [gap["broker"] for gap in answer["not_covered"]] == [None]


@pytest.mark.parametrize(
    ("begin", "end", "throttled", "gaps"),
    [
        ("22:43:20", "22:44:20", True, []),
        ("22:48:00", "23:13:00", False, []),
        ("22:20:00", "22:44:00", None, [("1", 1_700_000_400.0, 1_700_001_000.0)]),
        ("22:00:00", "22:14:00", None, [(None, 1_699_999_200.0, START)]),
        ("21:00:00", "22:00:00", None, [(None, 1_699_995_600.0, 1_699_999_200.0)]),
    ],
)
def test_not_throttled_is_said_only_of_what_the_log_covers(
    begin: str,
    end: str,
    throttled: bool | None,  # noqa: FBT001 - a case
    gaps: Sequence[tuple[str | None, float, float]],
    folder: Path,
    run: Run,
) -> None:
    """A time before the log, and a quarter of an hour without any request, are unknown."""
    times = ("--begin", f"2023-11-14T{begin}", "--end", f"2023-11-14T{end}+00:00")
    answer = asked(run, folder, "--user", "alice", *times)
    assert answer["throttled"] is throttled
    covered = [(gap["broker"], gap["begin"], gap["end"]) for gap in answer["not_covered"]]
    assert covered == gaps
    _, out, _ = run("episodes", folder, "--user", "alice", *times)
    assert ("no throttle was logged" in out) is (throttled is False)
    assert ("unknown in part" in out) is (throttled is None)


def test_a_broker_without_a_line_of_the_day_is_not_covered(tmp_path: Path, run: Run) -> None:
    """A broker with requests on the day before, and none on the day, has a missing log."""
    written(tmp_path, (-90_000.0, {"broker": "2"}), (0.0, {}), (60.0, {}))
    answer = asked(run, tmp_path, "--begin", "2023-11-14T22:13:20Z", "--end", "2023-11-14T22:14:20Z")
    assert answer["throttled"] is None
    assert [(gap["broker"], gap["begin"], gap["end"]) for gap in answer["not_covered"]] == [("2", START, START + 60)]


def test_a_gap_of_centuries_costs_no_time(tmp_path: Path) -> None:
    """A period of centuries, from broken clocks, takes time by its requests, not by its quarters of an hour."""
    centuries = 79 * 36_525 * 86_400
    written(tmp_path, *((centuries * (number % 2), {"broker": f"{number // 2}"}) for number in range(100)))
    answer = find_episodes(str(tmp_path), (None, None))
    assert len(answer["not_covered"]) == 50


def test_what_an_interrupted_run_left_is_not_covered(folder: Path, run: Run) -> None:
    """The period leaves out requests that came to the history, and not to its episodes yet."""
    source = IngestTables.create(str(folder)).requests
    append(source, "late", requests({"timestamp": START_MS, "throttle_ms": 9}))
    history = History.create(str(folder))
    follow(source, [Follower(history.detail, history_of, COLUMNS)])
    bob = (folder, "--user", "bob", "--begin", "2023-11-14T22:48", "--end", "2023-11-14T22:49")
    assert asked(run, *bob)["throttled"] is None
    history.update(source)
    assert asked(run, *bob)["throttled"] is False


def test_a_history_without_the_table(folder: Path, run: Run) -> None:
    """A history without the table is an error that says how an ingest makes the table again."""
    rmtree(folder / "episodes")
    code, _, err = run("episodes", folder, "--user", "alice")
    assert code == 1
    assert "there is no table; ingest a request log into it first" in err
    assert run("ingest", LOG, "--broker", 1, "--into", folder)[0] == 0
    assert asked(run, folder, "--user", "alice")["episodes"][0]["throttled_requests"] == 4


def test_hostile_names_stay_in_their_cells(folder: Path, run: Run) -> None:
    """A hostile name forges no line and moves no cursor in a terminal, and is unchanged in JSON."""
    answer = asked(run, folder, "--user", HOSTILE)
    assert [episode["user"] for episode in answer["episodes"]] == [HOSTILE]
    _, out, _ = run("episodes", folder)
    assert "\x1b" not in out
    assert "alice / app" in out
    for option in ("--user", "--client-id"):
        assert asked(run, folder, option, "\udcff")["episodes"] == [], "an argument that is no UTF-8"


def test_a_client_without_a_client_id_is_not_its_user(tmp_path: Path, run: Run) -> None:
    """A log has each client's own episodes; a broker's empty client-id stands for all of a user's clients."""
    written(tmp_path, (0, {"client_id": "", "throttle_ms": 7}))
    _, out, _ = run("episodes", tmp_path)
    assert 'alice / ""' in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of them"),
        (("x", "--exporter", "http://x"), "give one of them"),
        (("x", "--begin", "tonight"), "'tonight' is not a time"),
        (("x", "--begin", "2026-01-02", "--end", "2026-01-02"), "later than --begin"),
        ((*BERLIN, "--end", "2026-10-25T02:30"), "give 2026-10-25T02:30:00+02:00 or"),
        ((*BERLIN, "--begin", "2026-03-29T02:30"), "for --begin: the clocks of Europe/Berlin show it twice or never"),
        (("x", "--time-zone", "Nowhere"), "invalid value for --time-zone: 'Nowhere' is not a time zone"),
        (("nothing",), "nothing: there is no such folder; `quotascope ingest LOGS --into FOLDER` makes a history"),
        (("--exporter", "http://127.0.0.1:9"), "127.0.0.1:9"),
    ],
)
def test_mistakes(
    arguments: Sequence[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """Each mistake is one message with an exit code that is not 0."""
    monkeypatch.chdir(tmp_path)
    code, out, err = run("episodes", *arguments)
    assert code > 0
    assert out == ""
    assert message in err


@contextmanager
def answering(*seen: tuple[float, Sequence[EntityUsage]], failed: float | None = None) -> Iterator[str]:
    """Yield the address of an exporter that saw episodes at times after `NOW`, and failed to read its node once."""
    episodes = Episodes()
    with capture_logs():  # of the exporter, not of the command
        for offset, usages in seen:
            newest = snapshot(*usages, sources=(health(up=offset != failed),), taken_at=NOW + offset)
            episodes.note(newest)

    class Api(Handler):
        def do_GET(self) -> None:  # noqa: N802 - its name there
            query = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
            query_of_page = EpisodeQuery.read(query).with_values(size=1)
            self.answer(200, encoded(episodes_document(newest, episodes, query_of_page)))

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Api)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def exporter() -> Iterator[str]:
    """Run an exporter that saw alice throttled by her rule, bob by an unknown one, and failed to read a node."""
    alice = usage(configured=limits(), limit=1_000.0, usage=2_000.0, throttle_time_seconds=0.5)
    bob = usage(user="bob", throttle_time_seconds=2.0)
    with answering((0, [alice]), (30, [alice, bob]), (60, []), (100, []), (130, []), failed=60) as url:
        yield url


def test_an_ongoing_episode_fits_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """No unit is cut off at the right."""
    monkeypatch.setenv("COLUMNS", "80")
    dana = usage(QuotaType.CONTROLLER_MUTATION, "dana-of-analytics", "notebook-1", throttle_time_seconds=192.0)
    with answering((0.0, [dana]), (3.25, [dana])) as url:
        _, out, _ = run("episodes", "--exporter", url, "--begin", "1960-01-01")
    first, second = (line for line in out.splitlines() if " 3.25 s " in line or " ongoing " in line)
    assert first.rstrip().endswith(" 3 min 12 s")
    assert " 3.25 s " in first
    assert " ongoing " in second


def test_an_episode_of_a_client_id_may_be_of_any_user(run: Run) -> None:
    """An episode of a client-id may be of any user: brokers measure them together, so that a user's is unknown."""
    with answering((0, [usage(user="", client_id="app", throttle_time_seconds=0.5)])) as url:
        options = ("--exporter", url, "--end", "2026-11-21T09:03:00")
        answer = asked(run, *options, "--user", "alice")
        assert (answer["throttled"], answer["episodes"], answer["measured_together"]) == (None, [], 1)
        assert "1 more may be of this client" in run("episodes", *options, "--user", "alice")[1]
        (episode,) = asked(run, *options, "--user", "alice", "--client-id", "app")["episodes"]
        assert (episode["user"], episode["client_id"]) == ("", "app")
        assert asked(run, *options, "--client-id", "app")["throttled"]
        assert asked(run, *options, "--user", "alice", "--client-id", "web")["throttled"] is False
        assert asked(run, *options, "--user", "")["measured_together"] == 0


def test_an_exporter_is_asked_once(exporter: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command asks an exporter once, also for one name: it chooses the name's episodes from the whole answer."""
    queries = list[EpisodeQuery]()

    async def counted(target: HttpTarget, query: EpisodeQuery) -> dict[str, Any]:
        queries.append(query)
        return await read_episodes(target, query)

    monkeypatch.setattr("quotascope.exporter.api.client.read_episodes", counted)
    (episode,) = asked(run, "--exporter", exporter, "--user", "bob")["episodes"]
    assert episode["user"] == "bob"
    assert len(queries) == 1


def test_a_running_exporter(exporter: str, run: Run) -> None:
    """The command shows all parts of an exporter's answer, with null for unknown figures, and its gaps."""
    answer = asked(run, "--exporter", exporter)
    alice, bob = answer["episodes"]
    expected = {
        "began_at": NOW,
        "ended_at": NOW + 30,
        "ongoing": False,
        "rules": ["3 user alice"],
        "throttled_requests": None,
        "longest_throttle_seconds": 0.5,
    }
    assert alice.items() >= expected.items()
    assert (bob["user"], bob["rules"]) == ("bob", None)
    assert answer["not_covered"] == [{"broker": None, "begin": NOW + 30, "end": NOW + 60}]
    _, out, _ = run("episodes", "--exporter", exporter, "--user", "alice")
    for text in (
        " 2026-11-21 09:03:00  30 s    user alice ",
        "\n                               3 user alice ",
        "nothing was seen from 2026-11-21 09:03:30 UTC to 2026-11-21 09:04:00 UTC",
    ):
        assert text in out
    carol = ("--exporter", exporter, "--user", "carol")
    _, out, _ = run("episodes", *carol, "--begin", "2026-11-21T09:04:10", "--end", "2026-11-21T09:05")
    assert "no throttle was seen from 2026-11-21 09:04:10 UTC to 2026-11-21 09:05:00 UTC\n" in out
    assert "user" not in out
    (*_, newest) = run("episodes", "--exporter", exporter, "--client-id", "app")[1].splitlines()
    assert (
        newest
        == "2 more may be of this client, which brokers measure together with others: give --user and --client-id"
    )
    earlier = asked(run, *carol, "--begin", "2026-11-21T09:00", "--end", "2026-11-21T09:03:20")
    assert earlier["throttled"] is None
    assert earlier["not_covered"] == [{"broker": None, "begin": NOW - 180, "end": NOW}]


def test_sums_by_user(run: Run, tmp_path: Path) -> None:
    """Throttles of a user's clients within a pause are one episode, with sums and the longest throttle."""
    clients = (("spark-1", 0.0, 500), ("spark-2", 30.0, 700), ("spark-3", 400.0, 900))
    slow = [(offset, {"user": "etl", "client_id": name, "throttle_ms": ms}) for name, offset, ms in clients]
    other_client = (10.0, {"user": "alice", "client_id": "a", "throttle_ms": 100})
    written(tmp_path, *slow, other_client)
    assert len(asked(run, tmp_path)["episodes"]) == 4
    episodes = asked(run, tmp_path, "--by-user", "--quotas", quotas_file(tmp_path))["episodes"]
    assert [(row["user"], row["client_id"], row["throttled_requests"]) for row in episodes] == [
        ("etl", None, 2),
        ("alice", None, 1),
        ("etl", None, 1),
    ]
    episode = episodes[0]
    assert (episode["throttle_seconds"], episode["longest_throttle_seconds"]) == (1.2, 0.7)
    assert (episode["began_at"], episode["ended_at"]) == (START, START + 30.7)
    assert episode["rules"] == ["request 6 user <default>"]
    code, out, _ = run("episodes", tmp_path, "--by-user")
    assert code == 0
    assert "user etl" in out
    assert "spark-1" not in out


def quotas_file(folder: Path) -> Path:
    path = folder / "quotas.yaml"
    path.write_text(QUOTAS)
    return path


def test_sums_of_what_is_unknown() -> None:
    """An episode of unknown length makes the sum unknown, as an exporter reports no totals."""
    broker = {
        "user": "u",
        "broker": "1",
        "quota_type": "fetch",
        "client_id": "a",
        "began_at": 1.0,
        "ended_at": 5.0,
        "ongoing": False,
    }
    counts = {"throttled_requests": 3, "throttle_seconds": 2.0, "longest_throttle_seconds": 1.0, "rules": ["x"]}
    unknown = {
        **dict.fromkeys(counts),
        "longest_throttle_seconds": 4.0,
        "client_id": "b",
        "began_at": 4.0,
        "ongoing": True,
    }
    (total,) = summed_by_user([{**broker, **counts}, {**broker, **unknown}])
    assert {name: total[name] for name in counts} == {
        "throttled_requests": None, "throttle_seconds": None, "longest_throttle_seconds": 4.0, "rules": None,
    }  # fmt: skip
    assert total["ongoing"]
