"""Actions of operators and accidents on a cluster and on the exporter, each of them again and again."""

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Final

from benchmarks.process import catches
from benchmarks.soak.quotas import client_rule
from benchmarks.soak.records import Book, Event
from benchmarks.soak.stage import Stage
from tests.cluster.quotas import Quotas

from quotascope.clients import ClientError

FILE_SECONDS: Final = 45.0
QUOTAS_SECONDS: Final = 20.0
RELOAD_SECONDS: Final = 70.0
BROKER_SECONDS: Final = (60.0, 240.0)
FROZEN_SECONDS: Final = 20.0
DOWN_SECONDS: Final = 25.0
RULES: Final = 100
"""Rules that come and go, beside those that stay."""
STOPPED_SECONDS: Final = 20.0


class Chaos:
    """
    Troubles for one run.

    Args:
        stage: Whom it happens to.
        book: Where it is written down.

    """

    def __init__(self, stage: Stage, book: Book) -> None:
        self._stage = stage
        self._book = book
        self._random = random.Random(11)  # noqa: S311 - no secrets here

    async def change_files(self) -> None:
        """Let other nodes be found, one way or the other; now and then the file cannot be read."""
        while True:
            stage = self._stage
            sample = self._random.sample(stage.findable, self._random.randint(1, 4))
            groups = [{"targets": [agent.name for agent in sample], "labels": {}}]
            broken = self._random.random() < 0.2  # noqa: PLR2004 - one in five
            if not broken:
                stage.sources = replace(stage.sources, found=sample, changed_at=stage.clock())
            new = stage.targets.with_suffix(".new")
            new.write_text("[{" if broken else json.dumps(groups))
            new.rename(stage.targets)
            self._tell(f"file: {'broken' if broken else len(sample)}")
            await asyncio.sleep(FILE_SECONDS)

    async def change_quotas(self) -> None:
        """Set and remove quotas of real Kafka, as long as there is one."""
        while True:
            rules = [client_rule(self._random.randrange(2_000)) for _ in range(RULES)]
            await asyncio.to_thread(self._admin, lambda quotas: quotas.set(*rules))  # noqa: B023 - at once
            await asyncio.sleep(QUOTAS_SECONDS)
            await asyncio.to_thread(self._admin, lambda quotas: quotas.remove(*rules))  # noqa: B023 - as above

    def _admin(self, work: Callable[[Quotas], None]) -> None:
        connection = self._stage.kafka.connection()
        with contextlib.suppress(ClientError), closing(Quotas(connection)) as quotas:
            work(quotas)

    async def trouble_broker(self) -> None:
        """Freeze real Kafka, or kill it and start it again."""
        (node,) = self._stage.kafka.brokers
        while True:
            await asyncio.sleep(self._random.uniform(*BROKER_SECONDS))
            if self._random.random() < 0.5 and node.pid is not None:  # noqa: PLR2004 - half
                self._tell("Kafka is frozen")
                os.kill(node.pid, signal.SIGSTOP)
                await asyncio.sleep(FROZEN_SECONDS)
                os.kill(node.pid, signal.SIGCONT)
            else:
                self._tell("Kafka is killed")
                await asyncio.to_thread(node.kill)
                await asyncio.sleep(DOWN_SECONDS)
                node.start()
                await asyncio.to_thread(node.wait_until_ready, 120)
            self._tell("Kafka is well")

    async def reload(self) -> None:
        """Change the configuration and send SIGHUP; now and then it is one that cannot be used."""
        stage = self._stage
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            if not catches(stage.exporter.pid, signal.SIGHUP):
                raise RuntimeError("the exporter has no handler for SIGHUP")
            if self._random.random() < 0.2:  # noqa: PLR2004 - one in five
                stage.exporter.config.write_text("sources: [")
                os.kill(stage.exporter.pid, signal.SIGHUP)
                self._tell("reload: refused")
                continue
            fewer = self._random.sample(stage.listed, self._random.randint(2, 4))
            stage.sources = replace(stage.sources, listed=fewer, changed_at=stage.clock())
            stage.max_entities = self._random.choice((200, 400, 600))
            stage.exporter.configure(stage.settings())
            os.kill(stage.exporter.pid, signal.SIGHUP)
            self._tell(f"reload: {len(fewer)} listed, {stage.max_entities} entities")

    async def stop_exporter(self, after_seconds: float) -> None:
        """Stop the process for longer than scrapers wait: the defect that loses scrapes."""
        await asyncio.sleep(after_seconds)
        self._tell("the exporter is stopped")
        os.kill(self._stage.exporter.pid, signal.SIGSTOP)
        await asyncio.sleep(STOPPED_SECONDS)
        os.kill(self._stage.exporter.pid, signal.SIGCONT)
        self._tell("the exporter goes on")

    def _tell(self, text: str) -> None:
        self._book.add(Event(at=self._stage.clock(), what=text))
