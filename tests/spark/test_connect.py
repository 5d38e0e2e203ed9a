"""Spark Connect: a listener on two sessions of a real server, a client whose server is killed, a replay of a frame."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration import web
from tests.integration.eventually import eventually
from tests.pipeline.replay.histories import CROWD, SHARED, crowd, sorted_rows
from tests.pipeline.table.rows import append
from tests.spark.connect import replaying, watching
from tests.spark.connect.provision import installed
from tests.spark.connect.server import ConnectServer, connect_server
from tests.spark.process import spark_process, variables
from tests.spark.versions import NEWEST

from quotascope.pipeline.history import History
from quotascope.pipeline.replay import RESULTS, replay
from quotascope.quotas.candidates import Candidate
from quotascope.spark_listener.jvm import PLUGIN, write_jar

pytestmark = pytest.mark.real

Facts = dict[str, Any]
SHOWN = re.compile(
    r"^metrics_server_driver_plugin_io_quotascope_spark_ThrottlePlugin_(\w+)_Count\S* (\d+)$", re.MULTILINE
)
FAILED = watching.ATTEMPTS
NOTED = 1


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Return the observations of one run: by a client with two sessions, and by one whose server was killed."""
    folder = tmp_path_factory.mktemp("connect")
    write_jar(folder / "plugin.jar")
    conf = {"spark.jars": str(folder / "plugin.jar"), "spark.plugins": PLUGIN}
    with connect_server(folder / "server", conf) as server, _left(server, folder) as left:
        client = folder / "client"
        with spark_process(client, version=NEWEST, master=server.url, path=[installed()]) as driver:
            found = driver.call(watching.facts, server.url, str(client))
            found["metrics"] = _metrics(server)
            files = _history(folder / "usage")
            found["replayed"] = driver.call(replaying.facts, files)
        try:
            assert left.stdin is not None
            assert left.stdout is not None
            before = left.stdout.readline()
            server.kill()
            left.stdin.write("killed\n")
            left.stdin.flush()
            return {**found, "bereft": [before, left.stdout.readline()]}
        finally:
            left.kill()  # PySpark's own threads look for the server for ten minutes


def _history(folder: Path) -> list[str]:
    table = History.create(str(folder), 4).detail
    append(table, "rows", crowd(users=9, rows=500))
    return [f"{table.storage.uri}/{file.path}" for file in table.files()]


def _left(server: ConnectServer, folder: Path) -> "subprocess.Popen[str]":
    with (folder / "left.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", watching.__name__, server.url],
            env=variables(NEWEST, folder, installed()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


def _metrics(server: ConnectServer) -> dict[str, int]:
    """Our counters on Spark's page, when the last throttle time has arrived."""

    def arrived() -> dict[str, int]:
        page = web.ask(server.page).text
        found = {name: int(count) for name, count in SHOWN.findall(page)}
        assert found.get("kafkaThrottledMs_write_etl", 0) >= watching.THROTTLE_MS * 3
        return found

    return eventually(arrived, 60)


def test_source_is_reported(facts: Facts) -> None:
    """Without a way to the JVM, listener and page report the streaming listener and the event log as sources."""
    assert facts["source"] == "streaming+event_log"
    shown = {line.split("source=")[1] for line in facts["shown"]}
    assert shown == {'"event_log"} 1.0', '"streaming"} 1.0'}


def test_books_of_both_sessions(facts: Facts) -> None:
    """
    Queries count once and only for their session, though the event log covers them, too.

    Failures are those of the event log, which is the whole server's. Throttle times of the failed attempt are in its
    note.
    """
    assert facts["truth"] == [watching.THROTTLE_MS] * 3
    known = {
        "failures": {"other": NOTED + FAILED},
        "retries": {"other": NOTED + FAILED - 1},
        "throttles": [["", "alice", "etl", "write", watching.THROTTLE_MS, 1]],
        "lost": 0,
        "problems": [],
    }
    assert facts["books"] == [{"queries": [["clicks", 1, False]], **known}, {"queries": [], **known}]
    assert facts["before"]["failures"] == {}
    assert (facts["ended"], facts["problems"]) == ([True, True], [])


def test_metrics_of_spark_show_all_sessions(facts: Facts) -> None:
    """
    Spark's metrics have failures and throttle times of all sessions without a client.

    Successful attempts, which no event has, are included.
    """
    assert facts["metrics"] == {
        "executorsLost": 0,
        "kafkaQuotaFailures": 0,
        "kafkaThrottledMs_write_etl": watching.THROTTLE_MS * 3,
        "kafkaThrottledResponses_write_etl": 3,
        "stageRetries": 0,
        "taskFailures": NOTED + FAILED,
        "taskFailures_ExceptionFailure": NOTED + FAILED,
        "taskRetries": NOTED + FAILED - 1,
    }


def test_sessions_are_distinguished(facts: Facts) -> None:
    """Each session has one listener, with its own page, discovery entry and account, however often it attaches."""
    names = sorted(f"{facts['app_id']}-{session}.json" for session in facts["sessions"])
    assert len(set(names)) == 2
    assert facts["attached"] == [True, True]
    assert facts["pages"]
    assert facts["entries"] == names
    assert facts["left"] == names  # the accounts; the entries are gone


def test_client_outlives_its_server(facts: Facts) -> None:
    """A killed server raises nothing, and closing the listener keeps no one waiting."""
    assert facts["bereft"] == ["streaming+event_log\n", "True none ['streaming']\n"]


@pytest.mark.parametrize(("name", "tried"), [("crowd", CROWD), ("shared", [SHARED])])
def test_frames_are_replayed(facts: Facts, name: str, tried: list[Candidate]) -> None:
    """Frames give the same results as one process."""
    found = pa.Table.from_pylist(facts["replayed"][name], RESULTS)
    here = replay(crowd(users=9, rows=500), tried)
    assert len(found) > 0
    assert sorted_rows(found) == sorted_rows(here)


def test_frames_that_are_no_history(facts: Facts) -> None:
    """
    A frame that lacks columns is refused before anything runs, and a worker's error is in Spark's.

    Operations have a tag: Connect's pages show nothing else. The client knows no tasks, so that none are reported.
    """
    replayed = facts["replayed"]
    assert replayed["missing"].startswith("the frame lacks the columns user;")
    assert "the history's column user is null in " in replayed["null"]
    assert (replayed["tags"], replayed["reports"]) == ([["quotascope: one and another"], []], [])
