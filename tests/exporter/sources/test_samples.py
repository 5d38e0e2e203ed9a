"""Lines of Prometheus text: recorded, made up against the official parser, and broken."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.exporter.recorded import CAPTURES
from tests.strategies import texts

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources.prometheus_text import numbers_in, page_of, parse_series

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
    """The wanted samples by our parser, with numbers as texts, which equal themselves."""
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
    """And what it refuses is an error of ours, or one of the few freedoms of OpenMetrics."""
    text = f"kafka_a{noise}\n"
    try:
        expected = official(text)
    except (ValueError, IndexError):
        expected = None
    try:
        found = ours(text)
    except (SourceUnreadable, ValueError):
        found = None
    if expected is not None and '{"' not in text.replace(" ", "").replace("\t", ""):
        assert found == expected


@given(st.binary(max_size=200))
def test_any_bytes_give_numbers_or_an_error_of_ours(noise: bytes) -> None:
    """Nothing that an agent can answer ends in another error."""
    try:
        keys, numbers = numbers_in(page_of(b"kafka_a" + noise), WANTED)
    except SourceUnreadable:
        return
    assert len(keys) == len(numbers)


def test_only_lines_about_quotas_are_read() -> None:
    """A broker's text has thousands of lines; the rest is not even parsed."""
    text = (CAPTURES / "combined/throttled.jmx_exporter.txt").read_text("utf-8")
    keys, _ = numbers_in(text, ("kafka_server_quota_",))
    assert len(keys) == text.count("\nkafka_server_quota_") > 0
    assert numbers_in("kafka_broken{ not a number\nkafka_b 1", ("kafka_b ",)) == (["kafka_b"], [1.0])


def test_a_key_is_the_text_of_the_series() -> None:
    """Whatever its number; exemplars and float timestamps of OpenMetrics belong to no number."""
    series = 'kafka_a{user="a } b",client_id="\\"1 # {2}\\""}'
    for rest in (" 1", " NaN 1700000000000", ' 1 # {trace_id="x"} 0.5 1700000000.1'):
        keys, _ = numbers_in(series + rest, WANTED)
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
    """A broken number must not pass for a missing one; the message shows no more than a bit of the line."""
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
    """They are checked when a series is first seen."""
    with pytest.raises(ValueError, match=r"name of a metric|malformed"):
        parse_series(series)
