"""Where `quotascope top` reads: the brokers, or an exporter that does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

from quotascope.exporter.config import Config
from quotascope.exporter.own_page import read_exporter
from quotascope.exporter.snapshot import Snapshot
from quotascope.exporter.sources.fetch import HttpTarget

from ..compose import build_collection

Read: TypeAlias = Callable[[], Awaitable[Snapshot]]
"""The state of the cluster now. Raises ``ExporterError``."""


def reading(
    config: Config, exporter: HttpTarget | None
) -> AbstractAsyncContextManager[Read]:
    """What gives one snapshot after the other. Raises ``ConfigError`` and ``ClientError``."""
    if exporter is None:
        return _of_brokers(config)
    return _of_exporter(exporter)


@asynccontextmanager
async def _of_brokers(config: Config) -> AsyncIterator[Read]:
    timeout_seconds = config.collection.timeout_seconds
    async with build_collection(config, watch=True) as collection:
        yield lambda: collection.snapshot(timeout_seconds)


@asynccontextmanager
async def _of_exporter(target: HttpTarget) -> AsyncIterator[Read]:
    yield lambda: read_exporter(target)
