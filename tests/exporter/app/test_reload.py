from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import MutableMapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.exporter.examples import NOW

from quotascope.clients.adapter import open_quota_admin
from quotascope.clients.errors import InvalidConnection
from quotascope.exporter.app import Parts, Reloader, build_parts, reload
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
            partial(build_parts, open_admin=_no_admin, environ={}),
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
    """What changed is reported by name; the log follows at once."""
    world = World()
    world.given = {"cluster": "prod", "log": {"level": "debug"}}
    world.now += 7
    (line,) = await world.reload()
    assert line["event"] == "configuration was read again"
    assert line["changed"] == "cluster, log.level"
    assert world.parts.config.cluster == "prod"
    assert [each.level.value for each in world.reported] == ["debug"]
    assert world.reloader.health.succeeded_at == NOW + 7
    assert world.reloader.health.error is None


async def test_what_was_replaced_is_dropped_at_once() -> None:
    """Parts that hold each other would stay until Python looks for such, which it does rarely."""

    class Held:
        """Holds itself."""

    world, held = World(), Held()
    held.itself = held  # type: ignore[attr-defined]
    gone = weakref.ref(held)
    gc.disable()  # which takes what is young anyway
    try:
        del held
        await world.reload()
        assert gone() is None
    finally:
        gc.enable()


async def test_bad_configuration_changes_nothing() -> None:
    """Each problem is one line with its file; the next good one makes up for it."""
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
    """What the file alone does not show is found before anything is swapped."""
    world = World()
    world.given = {"kafka": {"bootstrap_servers": "a:1"}}
    (line,) = await world.reload()
    assert (line["problem"], world.swaps) == ("no such library", 0)


async def test_a_file_that_cannot_be_read_to_its_end_holds_no_reload_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network file system that hangs: the failure shows, and neither the next request nor the end of the exporter waits."""
    monkeypatch.setattr(reload, "_LONGEST_READ_SECONDS", 0.05)
    world = World()
    world.go_on.clear()
    problems = [(await world.reload())[0]["problem"] for _ in range(2)]
    assert problems == ["a file of it cannot be read to its end within 0.05 s", "a file of it is still being read"]
    assert world.reloader.health.error == problems[1]
    world.go_on.set()
    while world.reloader.health.error:
        await world.reload()


async def test_defects_are_reported() -> None:
    """A mistake of ours, in what is read or in a swap, must not end the exporter; later signals are heard all the same."""
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
    """Each time, as long as the file says something else than what is in force."""
    world = World()
    world.given = {"server": {"port": 1}, "cluster": "prod"}
    for changed in ("cluster", "nothing"):
        read, restart = await world.reload()
        assert read["changed"] == changed
        assert (restart["log_level"], restart["field"]) == ("warning", "server.port")
    assert world.swaps == 2  # files are looked at, though no field has changed
    assert world.parts.config.server.port == 9749
    assert world.reloader.health.needs_restart == ("server.port",)


async def test_signals_during_a_reload_become_one_more() -> None:
    """The last state of the file is read in any case, and never two at once."""
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


def built(before: Parts | None = None, **changes: Any) -> Parts:
    config = Config.model_validate({**BASE, **changes})
    return build_parts(loaded(config), before, open_admin=admin, environ={})


def kept(before: Parts, after: Parts) -> set[str]:
    """Which parts are the same objects; all sources, in the same order, count as one."""
    same = {
        "sources": [*map(id, before.sources)] == [*map(id, after.sources)],
        "finders": before.finders is after.finders,
        "limits": before.limits is after.limits,
        "push": before.push is after.push,
        "found": not after.renew,
    }
    return {name for name, is_same in same.items() if is_same}


ALL = {"sources", "finders", "limits", "push", "found"}


def test_a_rotated_password_makes_found_sources_again(tmp_path: Path) -> None:
    """Though their settings are the same."""
    file = tmp_path / "password"
    file.write_text("old")
    found = {**BASE["discovery"], "source": {"basic_auth": {"username": "me", "password_file": file}}}
    before = built(discovery=found)
    assert kept(before, built(before, discovery=found)) == ALL
    file.write_text("new")
    assert ALL - kept(before, built(before, discovery=found)) == {"found"}


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
    """Connections, and what was learned on them, outlive a change of something else; so do counts of a push."""
    before = built()
    after = built(before, **changes)
    assert ALL - kept(before, after) == new
    if before.push is not None and after.push is not None:  # a receiver would take a later start for a restart
        assert after.push.starts is before.push.starts


def test_sources_are_distinguished_by_their_names() -> None:
    """Those that stay keep their object wherever they stand now; the order is that of the configuration."""
    before = built()
    first, second = BASE["sources"]
    third = {"name": "c", "url": "http://c:1/jolokia"}
    moved = {**first, "timeout_seconds": 1}
    after = built(before, sources=[second, third, moved])
    assert [source.name for source in after.sources] == ["b", "c", "a"]
    assert after.sources[0] is before.sources[1]
    assert after.sources[2] is not before.sources[0]


def test_what_cannot_be_used_is_reported(tmp_path: Path) -> None:
    """A file of found sources is tried before any is found."""
    wrong = tmp_path / "header"
    wrong.write_bytes(b"\xff")
    common = {"header_files": {"Authorization": wrong}}
    with pytest.raises(ConfigError, match=r"discovery\.source: .* is not UTF-8"):
        built(discovery={**BASE["discovery"], "source": common})


def test_shadows_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    """What is wrong in it is reported with file, line and rule."""
    file = tmp_path / "shadow.yaml"
    file.write_text("candidates: [{name: one}]")
    before = built(shadow={"file": file})
    assert [candidate.name for candidate in before.shadows] == ["one"]
    assert built(before, shadow={"file": file}).shadows is before.shadows
    assert built(before).shadows == ()
    file.write_text("candidates:\n- name: two\n  quotas:\n  - {user: alice, producer_byte_rate: -1}")
    with pytest.raises(ConfigError, match=r"shadow\.yaml: line 4: user alice: .*producer_byte_rate"):
        built(before, shadow={"file": file})
    file.write_text(f"grid: [{{user: alice, key: producer_byte_rate, values: {[*range(1, 12)]}}}]")
    with pytest.raises(ConfigError, match="11 candidates, but at most 10 shadows"):
        built(before, shadow={"file": file})
