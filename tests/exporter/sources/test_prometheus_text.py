"""Pages of every dialect: found out, read, changed on the way, forced, and not to be made sense of."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.exporter.recorded import CAPTURES

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.mapping import BeanColumn
from quotascope.exporter.sources.dialects import CONFLUENT, DIALECTS, KAFKA_2_0_0, STRIMZI, TextDialect, detected
from quotascope.exporter.sources.fetch import HttpTarget
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource, TextReader

FOLDER = CAPTURES / "dialects"
PAGES = {
    "kafka_2_0_0.txt": "kafka_2_0_0",
    "confluent.txt": "confluent",
    "jmx_default.txt": "jmx_default",
    "jmx_default_lowercase.txt": "jmx_default",
    "msk.txt": "jmx_default",
    "strimzi.txt": "strimzi",
}
KRAFT = (FOLDER / "kafka-kraft-3_0_0.txt").read_bytes()
AGENT = b"jmx_scrape_error 0.0\n"
SAMPLE = b'kafka_server_quota_byte_rate{resource="Produce",user="a"} 1\n'


def page(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", PAGES)
def test_the_dialect_is_found_out(name: str) -> None:
    """A reader says which it is once it has seen a page, also one that was asked for quotas only, with `?name[]=`."""
    kept = re.compile(rb"(?:# \w+ )?kafka_server_(?:quota|produce|fetch|request)_", re.IGNORECASE)
    few = b"\n".join(filter(kept.match, page(name).split(b"\n")))
    for text in (page(name), few):
        reader = TextReader()
        assert reader.dialect == "prometheus"
        assert reader.read(text).layout.columns
        assert reader.dialect == PAGES[name]


@pytest.mark.parametrize("name", PAGES)
def test_no_page_shows_two_dialects(name: str) -> None:
    """Confluent's names are among those of a jmx_exporter without rules, which goes first."""
    text = "\n" + page(name).decode()
    shown = {dialect.name for dialect in DIALECTS if dialect.is_in(text)}
    assert shown - {"confluent"} == {PAGES[name]} - {"confluent"}


def test_an_agent_that_is_configured_again_is_followed() -> None:
    """From page to page the dialect may change, and nothing of the old one is left."""
    reader = TextReader()
    for name in (*PAGES, *reversed(PAGES)):
        columns = reader.read(page(name)).layout.columns
        assert reader.dialect == PAGES[name]
        assert columns == TextReader().read(page(name)).layout.columns


def test_what_a_series_meant_in_another_dialect_is_forgotten() -> None:
    """The same text is a client id in quotes to one, and one with quotes in it to the other."""
    reader = TextReader()
    quoted = b'kafka_server_produce_byte_rate{client_id="\\"a\\"",user="x"} 1\n'
    assert clients(reader, AGENT + quoted) == {"a"}
    assert clients(reader, quoted) == {'"a"'}


def test_a_page_without_marks_leaves_the_dialect_as_it_was() -> None:
    """Confluent's rules show nothing of their own until an entity is under a quota; before that it is open."""
    reader = TextReader()
    nothing = reader.read(AGENT + b"kafka_server_brokerstate_value 3.0\n")
    assert (nothing.layout.columns, reader.dialect) == ((), "prometheus")
    assert "agent's rules" in (nothing.hint or "")
    reader.read(page("confluent.txt"))
    nothing = reader.read(AGENT + b"kafka_server_brokerstate 3.0\n")
    assert (nothing.layout.columns, reader.dialect) == ((), "confluent")
    assert nothing.hint is not None


def test_a_forced_dialect_is_never_left() -> None:
    """Not even for a page in another one, which is reported; without its marks a jmx_exporter passes for Strimzi's reporter."""
    reader = TextReader(CONFLUENT)
    reading = reader.read(page("kafka_2_0_0.txt"))
    assert reader.dialect == "confluent"
    assert "says dialect confluent, but the answer is in kafka_2_0_0" in (reading.hint or "")
    bare = b"\n".join(line for line in page("confluent.txt").split(b"\n") if not line.startswith((b"jmx_", b"#")))
    quoted = '"a, client-id=b"'
    assert quoted in clients(TextReader(), bare)
    assert quoted not in clients(TextReader(CONFLUENT), bare)


def clients(reader: TextReader, text: bytes) -> set[str | None]:
    return {column.bean.get("client-id") for column in reader.read(text).layout.columns}


@pytest.mark.parametrize("name", PAGES)
def test_a_series_is_parsed_once(name: str) -> None:
    """Whatever its number, as long as its name and labels are the same text."""
    dialect = detected("\n" + page(name).decode())
    assert dialect is not None
    asked: list[str] = []

    def column_of(sample: str, labels: Mapping[str, str]) -> BeanColumn | None:
        asked.append(sample)
        return dialect.column_of(sample, labels)

    reader = TextReader(replace(dialect, column_of=column_of))
    first = reader.read(page(name))
    count = len(asked)
    changed = page(name).replace(b"} 0.0\n", b"} 7.5\n")
    second = reader.read(changed)
    assert len(asked) == count > 0
    assert second.layout is first.layout
    assert second.values != first.values


def test_names_that_hold_the_entity_are_reported() -> None:
    """The generic rules of the KRaft example lose users and client ids: the message says what to change, and is cut."""
    with pytest.raises(SourceUnreadable, match="above all rules such as") as caught:
        TextReader().read(AGENT + KRAFT)
    assert "_user_alice_mutation_rate" in str(caught.value)
    assert "quotascope rules jmx-exporter" in str(caught.value)
    with pytest.raises(SourceUnreadable) as caught:
        TextReader().read(b"kafka_server_produce_client_id_" + b"x" * 10_000 + b"_byte_rate 1\n")
    assert len(str(caught.value)) < 700


def test_entities_beside_such_names_are_shown_and_the_rest_is_reported() -> None:
    """Older quota rules forgot users without a client-id, which then fall to a generic rule."""
    reading = TextReader().read(page("kafka_2_0_0.txt") + KRAFT)
    assert reading.layout.columns == TextReader().read(page("kafka_2_0_0.txt")).layout.columns
    assert "cannot be recovered" in (reading.remark or "")


@pytest.mark.parametrize(
    ("name", "advice"),
    [("kafka_2_0_0.txt", "three quota rules"), ("strimzi.txt", "allowList"), ("jmx_default.txt", "includeObjectNames")],
)
def test_a_page_without_entities_has_a_hint(name: str, advice: str) -> None:
    """Whether it is the agent or there is nothing to report, only the diagnosis can say."""
    text = b"\n".join(
        line
        for line in page(name).split(b"\n")
        if b"start" in line.lower() or (b"user=" not in line and b"client" not in line)
    )
    assert advice in (TextReader().read(text).hint or "")
    assert TextReader().read(page(name)).hint is None


@pytest.mark.parametrize("text", [b"", b"<html>Sign in</html>", b"jvm_threads_current 1\n", b"{}", b"# kafka_ 1\n"])
@pytest.mark.parametrize("forced", [None, STRIMZI])
def test_text_without_kafka_is_unreadable(text: bytes, forced: None) -> None:
    """The wrong port or the wrong process must not pass for a quiet broker."""
    with pytest.raises(SourceUnreadable, match="no metric of Kafka"):
        TextReader(forced).read(text)


@pytest.mark.parametrize(
    "text",
    [
        SAMPLE.replace(b'user="a"', b'user="a" x="b"'),
        SAMPLE.replace(b'"}', b"}"),
        SAMPLE.replace(b" 1\n", b"\n"),
        SAMPLE.replace(b" 1\n", b" many\n"),
        SAMPLE + b"\xff\xfe",
    ],
)
def test_a_malformed_page_is_unreadable_and_forgotten(text: bytes) -> None:
    """The next good one is read as if nothing had been."""
    reader = TextReader()
    for _ in range(2):
        with pytest.raises(SourceUnreadable, match="not Prometheus text"):
            reader.read(text)
    assert list(reader.read(SAMPLE).values) == [1.0]


def test_a_factor_makes_a_number_kafkas() -> None:
    """For dialects in base units, the numbers of a page are turned back."""
    reader = TextReader(replace(KAFKA_2_0_0, factor_of=lambda _: 3.0))
    for _ in range(2):
        assert list(reader.read(SAMPLE).values) == [3.0]


@pytest.mark.parametrize(
    ("name", "forced", "reported"),
    [
        ("kafka_2_0_0.txt", STRIMZI, "says dialect strimzi, but the answer is in kafka_2_0_0"),
        ("confluent.txt", CONFLUENT, "configure node_id for this source"),
        ("confluent.txt", None, "configure node_id for this source"),
    ]
)  # fmt: skip
async def test_a_wrong_dialect_is_the_first_thing_to_mend(name: str, forced: TextDialect | None, reported: str) -> None:
    """Forced to read the wrong one, a source finds no node id either, which would lead astray."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=page(name))

    app = web.Application()
    app.router.add_get("/metrics", answer)
    async with TestServer(app) as server:
        url = str(server.make_url("/metrics"))
        source = PrometheusTextSource("b", HttpTarget(url=url), forced)
        with pytest.raises(SourceUnreadable, match=reported):
            await source.read()
        await source.close()
