"""A server that answers as the recorded Prometheus did, also with answers that a test changed."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from tests.builders.agents import answered_by
from tests.exporter.sources.prometheus_recording import FOLDER, kind_of

from quotascope.exporter.config import PrometheusConfig

Answers = dict[str, Any]
"""The data of each answer by its kind."""


def recorded(of: str = "kafka", release: str = "oldest") -> Answers:
    """Return the recorded answers about the brokers of one job, or about all."""
    answers: Answers = json.loads((FOLDER / f"{release}.json").read_text())[of]
    return copy.deepcopy(answers)


def series_of(answers: Answers, kind: str, instance: str) -> list[dict[str, Any]]:
    """Return the series of an instance, to be read and changed."""
    return [series for series in answers[kind]["result"] if series["metric"].get("instance") == instance]


def without(answers: Answers, instance: str) -> None:
    """Leave the present series of an instance out."""
    result = answers["vector"]["result"]
    answers["vector"]["result"] = [series for series in result if series["metric"].get("instance") != instance]


class RecordedPrometheus:
    """A server of recorded answers, which notes its queries."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: list[str] = []
        """The kinds of answers in the order in which they were asked for."""
        self.queries: list[str] = []
        self.nocache: list[str] = []
        self.headers: dict[str, str] = {}
        """The headers of the last request."""
        self.timeout = ""
        """The time that the last query was given."""
        self.warnings: list[str] = []
        self.refusal: tuple[int, bytes] | None = None

    async def answer(self, request: web.Request) -> web.Response:
        self.headers = dict(request.headers)
        parameters = {name: values[0] for name, values in parse_qs(await request.text()).items()} | dict(request.query)
        kind = kind_of(request.path.removeprefix("/api/v1/"), parameters)
        self.asked.append(kind)
        self.queries.append(parameters.get("query", ""))
        self.nocache.append(parameters.get("nocache", ""))
        self.timeout = parameters.get("timeout", self.timeout)
        if self.refusal is not None:
            return web.Response(status=self.refusal[0], body=self.refusal[1])
        document = {"status": "success", "data": self.answers[kind], "warnings": self.warnings}
        response = web.json_response(document)
        response.enable_compression()
        return response


@asynccontextmanager
async def answering(
    answers: Answers | None = None, change: Callable[[Answers], object] = lambda _: None
) -> AsyncIterator[tuple[RecordedPrometheus, PrometheusConfig]]:
    """Yield a server, and the configuration that reads it."""
    prometheus = RecordedPrometheus(recorded() if answers is None else answers)
    change(prometheus.answers)
    async with answered_by(prometheus.answer) as server:
        yield prometheus, PrometheusConfig(url=str(server.make_url("")).rstrip("/"), selector='{job="kafka"}')
