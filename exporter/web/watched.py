"""A web config file that is read again when it, or a file that it names, changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import structlog

from ..errors import ConfigError
from .load import WebSettings, load_web_settings
from .model import WebConfig
from .values import NO_CLIENT_CERT, REQUIRE_AND_VERIFY, VERIFY_IF_GIVEN

log = structlog.get_logger()

_SWITCHED: Final = (
    "tls_server_config came or went: TLS is switched on and off by a restart only"
)

_OPENED: Final = "{field} {what}: who may ask is loosened so by a restart only, for a file that is half written looks the same"
_STRICTNESS: Final = (NO_CLIENT_CERT, VERIFY_IF_GIVEN, REQUIRE_AND_VERIFY)

_AGAIN_AFTER_SECONDS: Final = 5.0

_Signature = tuple[tuple[int, int, int] | None, ...]


class WatchedSettings:
    """
    The settings of a web config file as it is now.

    A file that cannot be used any more is told once, and the last good one stays: a certificate whose key is still to
    be written closes no door, and a typing error opens none. Raises ``ConfigError`` when it cannot be used at first.
    ``clock`` gives steady seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._settings, self._seen = _loaded(path)
        self._problem: str | None = None
        self._again_at = float("inf")

    def now(self) -> WebSettings:
        """The settings; looks at the files, and reads them when they changed."""
        seen = _signature(self._settings.files)
        if seen != self._seen or self._clock() >= self._again_at:
            self._seen = seen
            self._read()
        return self._settings

    def _read(self) -> None:
        try:
            settings, seen = _loaded(self._path)
            _must_agree(self._path, settings, self._settings)
        except ConfigError as error:
            self._tell(str(error))
            # what it names may come later, and is not looked at yet
            self._again_at = self._clock() + _AGAIN_AFTER_SECONDS
            return
        self._settings, self._seen = settings, seen
        self._problem, self._again_at = None, float("inf")
        log.info("the web config file was read again", path=str(self._path))

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            text = (
                "the web config file cannot be used any more: the last good one stays"
            )
            log.error(text, error=problem)
        self._problem = problem


def _loaded(path: Path) -> tuple[WebSettings, _Signature]:
    """The settings, and how their files were before they were read, so that no change goes unseen."""
    before = _signature(load_web_settings(path).files)
    return load_web_settings(path), before


def _must_agree(path: Path, new: WebSettings, old: WebSettings) -> None:
    if (new.tls is None) is not (old.tls is None):
        raise ConfigError(str(path), [_SWITCHED])
    opened = [
        _OPENED.format(field=field, what=what)
        for field, what in _opened(new.config, old.config)
    ]
    if opened:
        raise ConfigError(str(path), opened)


def _opened(new: WebConfig, old: WebConfig) -> Iterator[tuple[str, str]]:
    """What no longer asks who somebody is."""
    if old.basic_auth_users and not new.basic_auth_users:
        yield "basic_auth_users", "is empty"
    now, before = new.tls_server_config, old.tls_server_config
    if now is None or before is None:
        return
    stricter = _STRICTNESS.index(before.client_auth_type)
    if _STRICTNESS.index(now.client_auth_type) < stricter:
        yield "client_auth_type", f"is {now.client_auth_type} now"
    if before.client_allowed_sans and not now.client_allowed_sans:
        yield "client_allowed_sans", "is empty"


def _signature(files: Iterable[Path]) -> _Signature:
    return tuple(map(_state, files))


def _state(file: Path) -> tuple[int, int, int] | None:
    """What differs once a file, or what a link leads to, is another one; None when there is none."""
    try:
        found = os.stat(file)  # noqa: PTH116 - half the price, for each request
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
