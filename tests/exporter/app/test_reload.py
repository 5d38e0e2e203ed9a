from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from collections.abc import MutableMapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import NOW

from quotascope.cli.alerts_config import read_alert_terms
from quotascope.clients.adapter import open_quota_admin
from quotascope.clients.errors import InvalidConnection
from quotascope.exporter import following
from quotascope.exporter.alert_terms import DEFAULT_TERMS
from quotascope.exporter.app import Parts, Reloader, build_parts
from quotascope.exporter.app.reload import changed_fields, changed_files
from quotascope.exporter.config import Config, KafkaConfig, LogConfig
from quotascope.exporter.config.load import loaded
from quotascope.exporter.errors import ConfigError
from quotascope.exporter.limits.admin import connection_of

BAD = ConfigError("/etc/q.yaml", ["line 3: server.port: expected", "line 9: what"])


class World:
    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.error: Exception | None = None
        self.parts = Parts(loaded=loaded(Config()))
        self.swaps = 0
        self.reported: list[LogConfig] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.now = NOW
        self.reloader = Reloader(
            self.read,
            partial(build_parts, open_admin=_no_admin, read_terms=read_alert_terms, environ={}),
            self.reported.append,
            clock=lambda: self.now,
        )

    def read(self) -> Config:
        self.go_on.wait(20)
        if self.error is not None:
            raise self.error
        return Config.model_validate(self.given)

    async def swap(self, parts: Parts) -> None:
        self.swaps += 1
        if parts.config.cluster == "broken":
            raise ZeroDivisionError
        self.parts = parts

    async def reload(self) -> list[MutableMapping[str, Any]]:
        with capture_logs() as lines:
            await self.reloader.reload(self)
        return lines


def _no_admin(_: object) -> Any:
    raise InvalidConnection("no such library")


async def test_good_configuration_takes_over() -> None:
    """A change is reported by the name of its field; the log follows at once."""
    world = World()
    world.given = {"cluster": "prod", "log": {"level": "debug"}}
    world.now += 7
    (line,) = await world.reload()
    assert line["event"] == "configuration was read again"
    assert line["changed"] == "cluster, log.level"
    assert world.parts.config.cluster == "prod"
    assert [log_config.level.value for log_config in world.reported] == ["debug"]
    assert world.reloader.health.succeeded_at == NOW + 7
    assert world.reloader.health.error is None


async def test_what_was_replaced_is_dropped_at_once() -> None:
    """Replaced parts are freed at once, without waiting for Python to collect cycles."""

    class Held:
        """Holds itself."""

    world, held = World(), Held()
    held.itself = held  # type: ignore[attr-defined]
    reference = weakref.ref(held)
    gc.disable()  # which takes what is young anyway
    try:
        del held
        await world.reload()
        assert reference() is None
    finally:
        gc.enable()


async def test_bad_configuration_changes_nothing() -> None:
    """A bad configuration changes nothing, and each problem is a line with its file; the next good one is used."""
    world = World()
    world.error = BAD
    world.now += 7
    lines = await world.reload()
    assert [(line["log_level"], line["file"], line["problem"]) for line in lines] == [
        ("error", "/etc/q.yaml", problem) for problem in BAD.problems
    ]
    assert (world.swaps, world.reloader.health.succeeded_at) == (0, NOW)
    assert "line 3: server.port" in (world.reloader.health.error or "")
    world.error = None
    await world.reload()
    assert world.reloader.health.error is None


async def test_parts_that_cannot_be_made_change_nothing() -> None:
    """A fault that the file alone does not show is found before anything is swapped."""
    world = World()
    world.given = {"kafka": {"bootstrap_servers": "a:1"}}
    (line,) = await world.reload()
    assert (line["problem"], world.swaps) == ("no such library", 0)


async def test_a_file_that_cannot_be_read_to_its_end_holds_no_reload_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A read that hangs, as on a network file system, stops neither the next request nor the end of the exporter.

    The failure is shown.
    """
    monkeypatch.setattr(following, "LONGEST_READ_SECONDS", 0.05)
    world = World()
    world.go_on.clear()
    problems = [(await world.reload())[0]["problem"] for _ in range(2)]
    assert problems == [
        "a file of the configuration cannot be read to its end within 0.05 s",
        "a file of the configuration is still being read",
    ]
    assert world.reloader.health.error == problems[1]
    world.go_on.set()
    while world.reloader.health.error:
        await world.reload()


class Rotation:
    """An exporter with a password file, which changes as the test says."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "password"
        self.file.write_text("old")
        self.world = World()
        auth = {"username": "me", "password_file": self.file}
        self.world.given = {
            "sources": [{"url": "http://a:1/jolokia", "basic_auth": auth}, {"url": "http://b:1/jolokia"}]
        }

    async def look(self) -> list[str]:
        """Return the log of one look at the files."""
        with capture_logs() as lines:
            await self.world.reloader.renew(self.world)
        return [f"{line['event']}: {line.get('changed') or line['problem']}" for line in lines]


async def test_a_rotated_file_is_used_without_a_signal(tmp_path: Path) -> None:
    """A rotated file rebuilds the part that uses it and no other; an unchanged file rebuilds nothing."""
    rotation = Rotation(tmp_path)
    await rotation.world.reload()
    assert [await rotation.look() for _ in range(2)] == [[], []]
    old_sources, swaps = rotation.world.parts.sources, rotation.world.swaps
    rotation.file.write_text("rotated")
    assert await rotation.look() == [f"files of the configuration were read again: {rotation.file}"]
    new_sources = rotation.world.parts.sources
    assert [old is new for old, new in zip(old_sources, new_sources, strict=True)] == [False, True]
    assert await rotation.look() == []
    assert rotation.world.swaps == swaps + 1


@pytest.mark.timeout(20)
async def test_a_rotated_file_that_cannot_be_used_is_tried_again(tmp_path: Path) -> None:
    """
    A rotated file that is absent, a pipe or no text leaves the part in use, and is tried again.

    The reason is logged once, and shown until it is gone.
    """
    rotation = Rotation(tmp_path)
    await rotation.world.reload()
    old_sources, health = rotation.world.parts.sources, rotation.world.reloader
    rotation.file.unlink()
    absent = [await rotation.look() for _ in range(3)]
    os.mkfifo(rotation.file)
    pipe = await rotation.look()
    rotation.file.unlink()
    rotation.file.write_bytes(b"\xff")
    no_text = await rotation.look()
    assert [len(lines) for lines in (*absent, pipe, no_text)] == [1, 0, 0, 1, 1]
    assert "No such file" in absent[0][0]
    assert "not a regular file" in pipe[0]
    assert "not UTF-8" in no_text[0]
    assert "not UTF-8" in (health.health.problem or "")
    assert rotation.world.parts.sources is old_sources
    rotation.file.write_text("new")
    assert await rotation.look() == [f"files of the configuration were read again: {rotation.file}"]
    assert health.health.problem is None


async def test_a_look_at_the_files_does_not_make_up_for_a_refused_configuration(tmp_path: Path) -> None:
    """The fault shows until the configuration itself can be used."""
    rotation = Rotation(tmp_path)
    await rotation.world.reload()
    rotation.world.error = BAD
    await rotation.world.reload()
    rotation.file.write_text("new")
    await rotation.look()
    assert "line 3" in (rotation.world.reloader.health.problem or "")


async def test_defects_are_reported() -> None:
    """
    A defect of ours in a read or in a swap is reported and does not end the exporter.

    Later signals are obeyed all the same.
    """
    world = World()
    world.error = ZeroDivisionError()
    assert len(await world.reload()) == 2
    errors = [world.reloader.health.error]
    world.error = None
    for cluster in ("broken", "mended"):
        world.given = {"cluster": cluster}
        await world.reload()
        errors.append(world.reloader.health.error)
    assert errors == ["ZeroDivisionError", "ZeroDivisionError", None]
    assert world.parts.config.cluster == "mended"


async def test_what_needs_a_restart_is_reported_and_left() -> None:
    """A field that needs a restart keeps its value and is reported at each reload until the file is as before."""
    world = World()
    world.given = {"server": {"port": 1}, "cluster": "prod"}
    for changed in ("cluster", "nothing"):
        report, restart = await world.reload()
        assert report["changed"] == changed
        assert (restart["log_level"], restart["field"]) == ("warning", "server.port")
    assert world.swaps == 2  # files are looked at, though no field has changed
    assert world.parts.config.server.port == 9749
    assert world.reloader.health.needs_restart == ("server.port",)


async def test_signals_during_a_reload_become_one_more() -> None:
    """Signals during a reload cause one more, so that the last state of the file is read."""
    world = World()
    running = asyncio.create_task(world.reloader.run(world))
    world.go_on.clear()
    world.reloader.want()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for _ in range(3):
        world.reloader.want()
    world.go_on.set()
    while world.swaps < 2:  # noqa: ASYNC110 - until both were made
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert world.swaps == 2


def test_fields_are_named_and_values_are_not() -> None:
    """A list counts as one field, and so does a section that comes or goes."""
    old, new = map(
        Config.model_validate,
        (
            {"cluster": "a", "sources": [{"url": "http://a:1"}], "collection": {"max_age_seconds": 1}, "otlp": {}},
            {
                "cluster": "b",
                "sources": [{"url": "http://b:1"}],
                "collection": {"max_age_seconds": 2, "margin_seconds": 1},
                "server": {"port": 1},
            },
        ),
    )
    changed = "cluster sources server.port collection.max_age_seconds collection.margin_seconds otlp"
    assert list(changed_fields(old, new)) == changed.split()
    assert list(changed_fields(new, new)) == []


def test_files_are_named(tmp_path: Path) -> None:
    """A password that was rotated shows by the name of its file."""
    file = tmp_path / "password"
    file.write_text("old")
    auth = {"username": "me", "password_file": file}
    settings = Config.model_validate({"sources": [{"url": "http://a:1", "basic_auth": auth}]})
    old = loaded(settings)
    assert list(changed_files(old, loaded(settings))) == []
    file.write_text("new")
    assert list(changed_files(old, loaded(settings))) == [str(file)]


BASE: dict[str, Any] = {
    "sources": [{"name": "a", "url": "http://a:1/jolokia"}, {"name": "b", "url": "http://b:1/jolokia"}],
    "discovery": {"kafka": {"url": "http://{host}:8778/jolokia"}},
    "kafka": {"bootstrap_servers": ["a:9092"]},
    "otlp": {"endpoint": "http://c:4318"},
}  # fmt: skip


def admin(kafka: KafkaConfig) -> Any:
    """Connects with the first call, which these tests do not make."""
    return open_quota_admin(connection_of(kafka))


def built(old_parts: Parts | None = None, **changes: Any) -> Parts:
    config = Config.model_validate({**BASE, **changes})
    return build_parts(loaded(config), old_parts, open_admin=admin, read_terms=read_alert_terms, environ={})


def kept(old: Parts, new: Parts) -> set[str]:
    """Return the names of the parts that are the same objects; all sources, in the same order, count as one."""
    unchanged = {
        "sources": [*map(id, old.sources)] == [*map(id, new.sources)],
        "finders": old.finders is new.finders,
        "limits": old.limits is new.limits,
        "push": old.push is new.push,
        "found": not new.renew,
    }
    return {name for name, is_same in unchanged.items() if is_same}


ALL = {"sources", "finders", "limits", "push", "found"}


def test_a_rotated_password_makes_found_sources_again(tmp_path: Path) -> None:
    """A rotated password creates the found sources again, though their settings are the same."""
    file = tmp_path / "password"
    file.write_text("old")
    discovery = {**BASE["discovery"], "source": {"basic_auth": {"username": "me", "password_file": file}}}
    old_parts = built(discovery=discovery)
    assert kept(old_parts, built(old_parts, discovery=discovery)) == ALL
    file.write_text("new")
    assert ALL - kept(old_parts, built(old_parts, discovery=discovery)) == {"found"}


@pytest.mark.parametrize(
    ("changes", "new"),
    [
        ({}, set()),
        ({"collection": {"max_age_seconds": 5}}, set()),
        ({"sources": BASE["sources"][:1]}, {"sources"}),
        ({"sources": []}, {"sources"}),
        ({"kafka": {"bootstrap_servers": ["b:9092"]}}, {"limits", "finders"}),
        ({"kafka": {"bootstrap_servers": ["a:9092"], "refresh_interval_seconds": 5}}, set()),
        ({"kafka": None, "discovery": {}}, {"limits", "finders"}),
        ({"discovery": {**BASE["discovery"], "source": {"timeout_seconds": 1}}}, {"found"}),
        ({"otlp": {"endpoint": "http://d:4318"}}, {"push"}),
        ({"otlp": None}, {"push"}),
        ({"cluster": "prod"}, {"push"}),
    ]
)  # fmt: skip
def test_only_what_changed_is_made_again(changes: dict[str, Any], new: set[str]) -> None:
    """Connections and what was learned on them, and a push's counts, outlive a change of other settings."""
    old_parts = built()
    new_parts = built(old_parts, **changes)
    assert ALL - kept(old_parts, new_parts) == new
    if old_parts.push is not None and new_parts.push is not None:  # a receiver would take a later start for a restart
        assert new_parts.push.starts is old_parts.push.starts


def test_starts_of_counters_are_known_while_nothing_is_pushed() -> None:
    """Counters keep their starts when pushes come back."""
    old_parts = built()
    again = built(built(old_parts, otlp=None))
    assert old_parts.push is not None
    assert again.push is not None
    assert again.push.starts is old_parts.push.starts


def test_sources_are_distinguished_by_their_names() -> None:
    """A source keeps its object by its name, wherever it is listed; the order is the configuration's."""
    old_parts = built()
    first_source, second = BASE["sources"]
    third = {"name": "c", "url": "http://c:1/jolokia"}
    moved = {**first_source, "timeout_seconds": 1}
    new_parts = built(old_parts, sources=[second, third, moved])
    assert [source.name for source in new_parts.sources] == ["b", "c", "a"]
    assert new_parts.sources[0] is old_parts.sources[1]
    assert new_parts.sources[2] is not old_parts.sources[0]


def test_what_cannot_be_used_is_reported(tmp_path: Path) -> None:
    """A file of found sources is tried before any is found."""
    wrong = tmp_path / "header"
    wrong.write_bytes(b"\xff")
    common = {"header_files": {"Authorization": wrong}}
    with pytest.raises(ConfigError, match=r"discovery\.source: .* is not UTF-8"):
        built(discovery={**BASE["discovery"], "source": common})


def test_shadows_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    """A fault in the file is reported with file, line and rule."""
    file = tmp_path / "shadow.yaml"
    file.write_text("candidates: [{name: one}]")
    old_parts = built(shadow={"file": file})
    assert [candidate.name for candidate in old_parts.shadows] == ["one"]
    assert built(old_parts, shadow={"file": file}).shadows is old_parts.shadows
    assert built(old_parts).shadows == ()
    file.write_text("candidates:\n- name: two\n  quotas:\n  - {user: alice, producer_byte_rate: -1}")
    with pytest.raises(ConfigError, match=r"shadow\.yaml: line 4: user alice: .*producer_byte_rate"):
        built(old_parts, shadow={"file": file})
    file.write_text(f"grid: [{{user: alice, key: producer_byte_rate, values: {[*range(1, 12)]}}}]")
    with pytest.raises(ConfigError, match="11 candidates, but at most 10 shadows"):
        built(old_parts, shadow={"file": file})


def test_the_configuration_of_the_alerts_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """A changed file of alerts is read again; a fault in it is reported by line and key; without it defaults hold."""
    file = tmp_path / "alerts.yaml"
    file.write_text("thresholds: {NEAR_LIMIT: 0.8}")
    old_parts = built(alerts_config=file)
    assert old_parts.alert_terms.thresholds.near_limit == 0.8
    assert built(old_parts, alerts_config=file).alert_terms is old_parts.alert_terms
    assert built(old_parts).alert_terms == DEFAULT_TERMS
    file.write_text("thresholds: {NEAR_LIMIT: 0.7}")
    assert built(old_parts, alerts_config=file).alert_terms.thresholds.near_limit == 0.7
    file.write_text("thresholds:\n  NEAR_LIMIT: much")
    with pytest.raises(
        ConfigError, match=r"alerts\.yaml: line 2: thresholds\.NEAR_LIMIT: expected a number, got 'much'"
    ):
        built(old_parts, alerts_config=file)


def test_teams_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    """Teams are read again when their file, the alerts' one, changes; a fault is reported by file, line and key."""
    file, alerts = tmp_path / "teams.yaml", tmp_path / "alerts.yaml"
    alerts.write_text(f"teams: {file}")
    file.write_text("teams: [{team: payments, clients: [{user: alice}]}]")
    old_parts = built(teams=file, alerts_config=alerts)
    assert [team.name for team in old_parts.alert_terms.teams] == ["payments"]
    assert built(old_parts, teams=file, alerts_config=alerts).alert_terms is old_parts.alert_terms
    file.write_text("teams: [{team: etl, clients: [{user: alice}]}]")
    parts = built(old_parts, teams=file, alerts_config=alerts)
    assert [team.name for team in parts.alert_terms.teams] == ["etl"]
    file.write_text("teams:\n- team: etl\n  clients: [{usr: alice}]")
    with pytest.raises(
        ConfigError, match=r"(?s)teams\.yaml: .*line 3: unknown key 'usr' under teams\[0\]\.clients\[0\]"
    ):
        built(old_parts, teams=file)
    assert built(old_parts).alert_terms == DEFAULT_TERMS
