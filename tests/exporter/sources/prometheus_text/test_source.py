"""A node behind an agent that answers text."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.exporter.recorded import CAPTURES

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources.dialects import CONFLUENT, STRIMZI, TextDialect
from quotascope.exporter.sources.fetch import HttpTarget
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource


@pytest.mark.parametrize(
    ("page", "forced", "told"),
    [
        (
            "kafka_2_0_0.txt",
            STRIMZI,
            "says dialect strimzi, but the answer is in kafka_2_0_0",
        ),
        ("confluent.txt", CONFLUENT, "configure node_id for this source"),
        ("confluent.txt", None, "configure node_id for this source"),
    ],
)
async def test_a_wrong_dialect_is_the_first_thing_to_mend(
    page: str, forced: TextDialect | None, told: str
) -> None:
    """Forced to read the wrong one, a source finds no node id either, which would lead astray."""
    body = (CAPTURES / "dialects" / page).read_bytes()

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body)

    app = web.Application()
    app.router.add_get("/metrics", answer)
    async with TestServer(app) as server:
        url = str(server.make_url("/metrics"))
        source = PrometheusTextSource("b", HttpTarget(url=url), forced)
        with pytest.raises(SourceUnreadable, match=told):
            await source.read()
        await source.close()
