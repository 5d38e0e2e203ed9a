from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import MutableMapping
from functools import partial
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs
from tests.exporter.examples import NOW

from quotascope.clients.errors import InvalidConnection
from quotascope.exporter.app import Parts, Reloader, build_parts
from quotascope.exporter.app.reload import changed_fields, changed_files
from quotascope.exporter.config import Config, LogConfig
from quotascope.exporter.config.load import loaded
from quotascope.exporter.errors import ConfigError

BAD = ConfigError("/etc/q.yaml", ["line 3: server.port: expected", "line 9: what"])


class World:
    """A configuration that the test changes, and what is swapped to it."""

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
        """The configuration, or the error."""
        self.go_on.wait(20)
        if self.error is not None:
            raise self.error
        return Config.model_validate(self.given)

    async def swap(self, parts: Parts) -> None:
        """Count it."""
        self.swaps += 1
        if parts.config.cluster == "broken":
            raise ZeroDivisionError
        self.parts = parts

    async def reload(self) -> list[MutableMapping[str, Any]]:
        """The lines that it logs."""
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
