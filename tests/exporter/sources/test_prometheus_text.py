"""
Pages of every dialect, and their lines.

Recorded, changed on the way, forced, made up against the official parser, and broken.
"""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.exporter.recorded import CAPTURES
from tests.exporter.recorded import DIALECT_PAGES as PAGES
from tests.exporter.sources.http.hostile import body
from tests.exporter.sources.http.misbehaving import serving
from tests.strategies import texts

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources import lines as lines_of_pages
from quotascope.exporter.sources.dialects import CONFLUENT, DIALECTS, STRIMZI, TextDialect
from quotascope.exporter.sources.peer import HttpTarget
from quotascope.exporter.sources.prometheus_text import PrometheusTextSource, TextReader
from quotascope.exporter.sources.text_format import numbers_in, parse_series

FOLDER = CAPTURES / "dialects"
KRAFT = (FOLDER / "kafka-kraft-3_0_0.txt").read_bytes()
AGENT = b"jmx_scrape_error 0.0\n"
SAMPLE = b'kafka_server_quota_byte_rate{resource="Produce",user="a"} 1\n'


def page(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", PAGES)
def test_the_dialect_is_found_out(name: str) -> None:
    """The dialect is detected from a page, also from one with quotas only (`?name[]=`)."""
    quota_line = re.compile(rb"(?:# \w+ )?kafka_(?:quota|server_(?:quota|produce|fetch|request))_", re.IGNORECASE)
    few = b"\n".join(filter(quota_line.match, page(name).split(b"\n")))
    for text in (page(name), few):
        reader = TextReader()
        assert reader.dialect == "prometheus"
        assert reader.read(text).layout.columns
        assert reader.dialect == PAGES[name]


@pytest.mark.parametrize("name", PAGES)
def test_no_page_shows_two_dialects(name: str) -> None:
    """A page is of one dialect: a jmx_exporter without rules comes before Confluent's, whose names it includes."""
    text = "\n" + page(name).decode()
    dialects_shown = {dialect.name for dialect in DIALECTS if dialect.is_in(text)}
    assert dialects_shown - {"confluent"} == {PAGES[name]} - {"confluent"}


def test_an_agent_that_is_configured_again_is_followed() -> None:
    """The dialect may change from page to page, and no state of the old one is left."""
    reader = TextReader()
    for name in (*PAGES, *reversed(PAGES)):
        columns = reader.read(page(name)).layout.columns
        assert reader.dialect == PAGES[name]
        assert columns == TextReader().read(page(name)).layout.columns


def test_what_a_series_meant_in_another_dialect_is_forgotten() -> None:
    """A series is read again in a new dialect, where quotes may be part of a client-id."""
    reader = TextReader()
    quoted = b'kafka_server_produce_byte_rate{client_id="\\"a\\"",user="x"} 1\n'
    assert clients(reader, AGENT + quoted) == {"a"}
    assert clients(reader, quoted) == {'"a"'}


def test_a_page_without_marks_leaves_the_dialect_as_it_was() -> None:
    """A page without marks, as of Confluent's rules before the first quota, leaves the dialect as it was."""
    reader = TextReader()
    nothing = reader.read(AGENT + b"kafka_server_brokerstate_value 3.0\n")
    assert (nothing.layout.columns, reader.dialect) == ((), "prometheus")
    assert "agent's rules" in (nothing.hint or "")
    reader.read(page("confluent.txt"))
    nothing = reader.read(AGENT + b"kafka_server_brokerstate 3.0\n")
    assert (nothing.layout.columns, reader.dialect) == ((), "confluent")
    assert nothing.hint is not None


def test_a_forced_dialect_is_never_left() -> None:
    """
    A forced dialect is used for pages in another one, too, which is reported.

    Without other marks, the quotes of names show a jmx_exporter.
    """
    reader = TextReader(CONFLUENT)
    reading = reader.read(page("kafka_2_0_0.txt"))
    assert reader.dialect == "confluent"
    assert "says dialect confluent, but the answer is in kafka_2_0_0" in (reading.hint or "")
    bare = b"\n".join(line for line in page("confluent.txt").split(b"\n") if not line.startswith((b"jmx_", b"#")))
    assert clients(TextReader(), bare) >= clients(TextReader(CONFLUENT), bare)
    reader = TextReader(STRIMZI)
    assert '"a, client-id=b"' in clients(reader, bare)
    assert reader.dialect == "strimzi"


def clients(reader: TextReader, text: bytes) -> set[str | None]:
    return {column.bean.get("client-id") for column in reader.read(text).layout.columns}


@pytest.mark.parametrize("name", PAGES)
def test_a_series_is_parsed_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A series is parsed once, as long as its name and labels are the same text."""
    requested: list[str] = []

    def counted(text: str) -> tuple[str, dict[str, str]]:
        requested.append(text)
        return parse_series(text)

    monkeypatch.setattr(lines_of_pages, "parse_series", counted)
    reader = TextReader()
    first_page = reader.read(page(name))
    count = len(requested)
    changed = page(name).replace(b"} 0.0\n", b"} 7.5\n")
    second = reader.read(changed)
    assert len(requested) == count > 0
    assert second.layout is first_page.layout
    assert second.values != first_page.values


def test_names_that_hold_the_entity_are_reported() -> None:
    """Rules that put entities into names of metrics, as KRaft's example, are reported with what to change."""
    with pytest.raises(SourceUnreadable, match="above all rules such as") as caught:
        TextReader().read(AGENT + KRAFT)
    assert "_user_alice_mutation_rate" in str(caught.value)
    assert "quotascope rules jmx-exporter" in str(caught.value)
    with pytest.raises(SourceUnreadable) as caught:
        TextReader().read(b"kafka_server_produce_client_id_" + b"x" * 10_000 + b"_byte_rate 1\n")
    assert len(str(caught.value)) < 700


def test_entities_beside_such_names_are_shown_and_the_rest_is_reported() -> None:
    """Entities with labels are shown, and users without a client-id, lost to a generic rule, reported."""
    reading = TextReader().read(page("kafka_2_0_0.txt") + KRAFT)
    assert {*reading.layout.columns} > {*TextReader().read(page("kafka_2_0_0.txt")).layout.columns}
    assert "cannot be recovered" in (reading.remark or "")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("kafka_2_0_0.txt", "three quota rules"),
        ("strimzi.txt", "allowList"),
        ("jmx_default.txt", "filter of object names"),
    ],
)
def test_a_page_without_entities_has_a_hint(name: str, advice: str) -> None:
    """A page without entities has a hint for the diagnosis, which knows if any are expected."""
    text = b"\n".join(
        line
        for line in page(name).split(b"\n")
        if b"start" in line.lower() or (b"user=" not in line and b"client" not in line)
    )
    assert advice in (TextReader().read(text).hint or "")
    assert TextReader().read(page(name)).hint is None


@pytest.mark.parametrize("text", [b"", b"jvm_threads_current 1\n", b"# kafka_ 1\n"])
@pytest.mark.parametrize("forced", [None, STRIMZI])
def test_text_without_kafka_is_unreadable(text: bytes, forced: None) -> None:
    """The wrong port or the wrong process must not pass for a quiet broker."""
    with pytest.raises(SourceUnreadable, match="no metric of Kafka"):
        TextReader(forced).read(text)


@pytest.mark.parametrize(
    "text",
    [
        SAMPLE.replace(b'user="a"', b'user="a" x="b"'),
        SAMPLE.replace(b'"a"', b'"b"') + SAMPLE.replace(b'user="a"', b'user="a" x="b"'),
        SAMPLE.replace(b'"}', b"}"),
        SAMPLE.replace(b" 1\n", b"\n"),
        SAMPLE.replace(b" 1\n", b" many\n"),
        SAMPLE + b"\xff\xfe",
    ],
)
def test_a_malformed_page_is_unreadable_and_forgotten(text: bytes) -> None:
    """A malformed page is refused, and leaves no trace in the next one."""
    reader = TextReader()
    for _ in range(2):
        with pytest.raises(SourceUnreadable, match="not Prometheus text"):
            reader.read(text)
    assert list(reader.read(SAMPLE).values) == [1.0]


def test_a_unit_in_a_name_makes_a_number_kafkas() -> None:
    """Kafka has milliseconds; the numbers of a page in seconds are turned back, from page to page."""
    reader = TextReader()
    for _ in range(2):
        text = SAMPLE.replace(b"byte_rate", b"throttle_time_seconds") + SAMPLE
        assert [*reader.read(text).values] == [1000.0, 1.0]


@pytest.mark.parametrize(
    ("name", "forced", "reported"),
    [
        ("kafka_2_0_0.txt", STRIMZI, "says dialect strimzi, but the answer is in kafka_2_0_0"),
        ("confluent.txt", CONFLUENT, "configure node_id for this source"),
        ("confluent.txt", None, "configure node_id for this source"),
    ]
)  # fmt: skip
async def test_a_wrong_dialect_is_the_first_thing_to_mend(name: str, forced: TextDialect | None, reported: str) -> None:
    """A wrong forced dialect is reported before the missing node id that it causes."""
    async with serving(body(page(name))) as url:
        source = PrometheusTextSource("b", HttpTarget(url=url), forced)
        with pytest.raises(SourceUnreadable, match=reported):
            await source.read()
        await source.close()


Sample = tuple[str, dict[str, str], str]
WANTED = ("kafka_",)
OTHERS = ("", "# a comment", "# EOF", "# HELP up x", "up 1", 'up{a="}"} 2 3', "\t", "\r")

names = st.sampled_from(("kafka_a", "kafka_server_b_total", "kafka:c9"))
label_names = st.sampled_from(("user", "client_id", "a", "_b9", "quantile"))
values = st.one_of(
    st.sampled_from(("NaN", "+Inf", "-Inf", "Inf", "1.0145709240540253E20", "-0.0")),
    st.floats().map(repr),
    st.integers(-(10**18), 10**18).map(str),
)
spaces = st.sampled_from((" ", "\t", "  ", " \t"))
ends = st.sampled_from(("", " ", "\r", " 1700000000000", "\t-5 ", " 12\r"))


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@st.composite
def lines(draw: st.DrawFn) -> str:
    labels = draw(st.dictionaries(label_names, texts, max_size=3))
    gap = draw(st.sampled_from(("", " ", "\t")))
    pairs = f"{gap},{gap}".join(f'{key}{gap}={gap}"{escaped(value)}"' for key, value in labels.items())
    comma = draw(st.sampled_from(("", ","))) if labels else ""
    empty = draw(st.sampled_from(("", "{}", "{ }")))
    inside = f"{{{gap}{pairs}{comma}{gap}}}" if labels else empty
    name, value, space = draw(names), draw(values), draw(spaces)
    return f"{name}{inside}{space}{value}{draw(ends)}"


def ours(text: str) -> list[Sample]:
    """Return the wanted samples by our parser, with numbers as texts, which equal themselves."""
    keys, numbers = numbers_in(text, WANTED)
    return [(*parse_series(key), repr(number)) for key, number in zip(keys, numbers, strict=True)]


def official(text: str) -> list[Sample]:
    return [
        (sample.name, sample.labels, repr(float(sample.value)))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(WANTED)
    ]


@given(st.lists(st.one_of(lines(), st.sampled_from(OTHERS)), max_size=8))
def test_the_same_samples_as_the_official_parser(page: list[str]) -> None:
    """Escapes, spaces, tabs, timestamps, line ends of Windows, commas, braces and quotes within values, 10 kB."""
    text = "\n".join(page) + "\n"
    assert ours(text) == official(text)


@given(
    st.lists(st.sampled_from((*'{}",=\\ \t\r#_+-.', "\\n", "kafka_a", "b", "1", " # ", "é")), max_size=14).map("".join)
)
@example('{a="b" c="d"} 1')
@example('{a="1",a="2"} 1')
@example('{a="b"}1')
@example(" 1 2 3")
@example(" 1_0")
def test_what_the_official_parser_accepts_we_read_the_same(noise: str) -> None:
    """A page is read as by the official parser, or is an error for both, but for a few freedoms of OpenMetrics."""
    text = f"kafka_a{noise}\n"
    try:
        expected = official(text)
    except (ValueError, IndexError):
        expected = None
    try:
        our_samples = ours(text)
    except (SourceUnreadable, ValueError):
        our_samples = None
    if expected is not None and '{"' not in text.replace(" ", "").replace("\t", ""):
        assert our_samples == expected


def test_only_lines_about_quotas_are_read() -> None:
    """Lines that are not about quotas, thousands of a broker's, are not parsed."""
    text = (CAPTURES / "combined/throttled.jmx_exporter.txt").read_text("utf-8")
    keys, _ = numbers_in(text, ("kafka_server_quota_",))
    assert len(keys) == text.count("\nkafka_server_quota_") > 0
    assert numbers_in("kafka_broken{ not a number\nkafka_b 1", ("kafka_b ",)) == (["kafka_b"], [1.0])


def test_a_key_is_the_text_of_the_series() -> None:
    """The key is the text, whatever its number; exemplars and float timestamps of OpenMetrics belong to no number."""
    series = 'kafka_a{user="a } b",client_id="\\"1 # {2}\\""}'
    for ending in (" 1", " NaN 1700000000000", ' 1 # {trace_id="x"} 0.5 1700000000.1'):
        keys, _ = numbers_in(series + ending, WANTED)
        assert keys == [series]
    text = 'kafka_a_total{a="b"} 3 1700000000.123 # {trace_id="}"} 0.5\nkafka_b 1\n# EOF\n'
    assert ours(text) == [("kafka_a_total", {"a": "b"}, "3.0"), ("kafka_b", {}, "1.0")]


@pytest.mark.parametrize(
    "line",
    [
        "kafka_a",
        "kafka_a ",
        'kafka_a{a="b"}',
        'kafka_a{a="b"} many',
        'kafka_a{a="b"} 1_0',
        'kafka_a{a="b',
        'kafka_a{a="' + 'x"' * 10_000,
        "kafka_a{" + "\\" * 10_000,
        "kafka_a " + "9 " * 10_000 + "x",
        "kafka_a" + '{"' * 100_000,
    ],
)
def test_a_line_without_a_number_is_unreadable(line: str) -> None:
    """A line with a broken number is refused, and the message shows only a bit of it."""
    with pytest.raises(SourceUnreadable, match="without a number") as caught:
        numbers_in(f"kafka_b 1\n{line}\n", WANTED)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "series",
    [
        "",
        "9a",
        "a b",
        "a{b}",
        'a{b="c" d="e"}',
        'a{b="c",,d="e"}',
        'a{b="c",b="d"}',
        'a{b="c}',
        'a{b="c\\"}',
        'a{9="c"}',
        'a{"b"="c"}',
        "a{" + " " * 1_000_000 + "}x",
        "a{" + "b" * 1_000_000 + "}",
        "a{" + " " * 1_000_000 + "b}",
        "a{" + 'b="c" ' * 100_000 + "}",
    ],
)
def test_malformed_labels_are_an_error(series: str) -> None:
    """Malformed labels are an error when a series is first seen."""
    with pytest.raises(ValueError, match=r"name of a metric|malformed"):
        parse_series(series)
