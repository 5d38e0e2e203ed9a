"""Pages whose lines are read by their forms, beside the same pages read line by line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.exporter.recorded import CAPTURES
from tests.exporter.recorded import DIALECT_PAGES as PAGES
from tests.strategies import texts

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.mapping import BeanColumn
from quotascope.exporter.sources import text_format
from quotascope.exporter.sources.forms import Forms
from quotascope.exporter.sources.prometheus_text import TextReader
from quotascope.exporter.sources.text_format import SampleKey

NAMES = (
    "kafka_server_quota_byte_rate",
    "kafka_server_quota_throttle_time",
    "kafka_server_quota_throttle_time_seconds",
    "kafka_server_quota_request_time",
    "kafka_server_quota",
    "kafka_server_produce_byte_rate",
    "kafka_server_Produce_byte_rate",
    "kafka_server_Produce_throttle_time",
    "kafka_server_request_request_time",
    "kafka_server_fetch_throttle_time_ratio",
    "kafka_server_app_info_starttimems",
    "kafka_quota_produce_bytes_per_second",
    "kafka_quota_throttle_time_seconds",
    "kafka_quota_node_start_time_seconds",
    "kafka_network_requestmetrics_errors_total",
)
LABELS = (
    *("user", "clientId", "client_id", "client-id", "User", "username"),
    *(
        "resource",
        "type",
        "quota_type",
        "attribute",
        "id",
        "tenant",
        "cluster",
        "job",
        "otel_scope_name",
        "_objectname",
    ),
)
VALUES = st.one_of(
    st.sampled_from(
        [
            *("", "a", "b", "team%3A1", '"a:b"', '"a', "a, client-id=b", "…", "é", "a" * 300, "sha256", "x\\y", "x\ny"),
            *(
                "Produce",
                "Fetch",
                "Request",
                "produce",
                "app-info",
                "Replication",
                "byte-rate",
                "throttle-time-seconds",
            ),
            "kafka.server<type=Produce, user=a><>byte-rate",
        ]
    ),
    texts,
)
NUMBERS = st.sampled_from(
    ["1", "2.5", "NaN", "+Inf", "1e3", " 7 ", "1 1700000000000", '1 # {trace="} 2"} 3', "1_0", "x", ""]
)


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """Return lines of a few forms, each with several values, whose names and labels stay the same."""
    forms = draw(
        st.lists(
            st.tuples(st.sampled_from(NAMES), st.lists(st.sampled_from(LABELS), max_size=4)), min_size=1, max_size=4
        )
    )
    page = []
    for name, labels in forms:
        joint = draw(st.sampled_from([",", ",", ", ", " ,"]))
        for _ in range(draw(st.integers(1, 5))):
            pairs = joint.join(f'{label.replace("-", "_")}="{escaped(draw(VALUES))}"' for label in labels)
            gap = draw(st.sampled_from(["", "", "", " "]))
            number = draw(st.one_of(st.sampled_from(["1", "2.5"]), NUMBERS))
            page.append(f"{name}{gap}{{{pairs}}} {number}" if labels else f"{name} {number}")
    return page


@contextmanager
def one_by_one() -> Iterator[None]:
    """Read all lines in full."""

    def columns_of(self: Forms, keys: Sequence[SampleKey]) -> list[list[BeanColumn | None]]:
        return [[self._read_in_full(key)] for key in keys]

    with patch.object(Forms, "columns_of", columns_of), patch.object(text_format, "_plain_samples", lambda _: None):
        yield


def outcomes(pages: Sequence[bytes]) -> list[object]:
    """Return what a reader makes of an agent's pages, one after the other: columns and numbers, or the error."""
    reader, results = TextReader(), list[object]()
    for page in pages:
        try:
            page_read = reader.read(page)
        except SourceUnreadable as error:
            results.append(str(error))
            continue
        columns = [(*column[:2], column.mapped) for column in page_read.layout.columns]
        results.append((columns, repr(page_read.values), page_read.coverage, page_read.remark, page_read.hint))
    return results


@given(st.lists(lines(), min_size=1, max_size=3), st.sampled_from(["\n", "\n", "\r\n"]))
@example(
    [
        [
            'kafka_server_quota_byte_rate{resource="Produce",user="a"} 1',
            'kafka_server_quota_byte_rate{resource="x",user="a"} 1',
        ]
    ],
    "\n",
)
@example(
    [
        [
            'kafka_server_produce_byte_rate{user="a",tenant="x"} 1',
            'kafka_server_produce_byte_rate{user="b",tenant="y"} 1',
        ]
    ],
    "\n",
)
def test_a_form_reads_what_the_line_says(pages: list[list[str]], end: str) -> None:
    """A form gives the same columns, numbers, coverage and errors as parsing each line."""
    texts_of_pages = ["".join(f"{line}{end}" for line in ("jmx_scrape_error 0.0", *page)).encode() for page in pages]
    with one_by_one():
        expected = outcomes(texts_of_pages)
    assert outcomes(texts_of_pages) == expected


@pytest.mark.parametrize("name", PAGES)
def test_recorded_pages_are_read_alike(name: str) -> None:
    """Forms read recorded pages as parsing each line does, also with fewer lines or in another order."""
    page = (CAPTURES / "dialects" / name).read_bytes()
    page_lines = page.splitlines(keepends=True)
    pages = [page, b"".join(page_lines[::2]), b"".join(reversed(page_lines))]
    with one_by_one():
        expected = outcomes(pages)
    assert outcomes(pages) == expected


def test_most_lines_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of each kind is parsed, however many entities there are."""
    parsed: list[SampleKey] = []
    learned = Forms._learn

    def counted(self: Forms, key: SampleKey, parts: list[str]) -> BeanColumn | None:
        parsed.append(key)
        return learned(self, key, parts)

    monkeypatch.setattr(Forms, "_learn", counted)
    page = "".join(
        f'kafka_server_quota_{attribute}{{clientId="c{number}",resource="{kind}",user="u"}} 1\n'
        for number in range(100)
        for kind in ("Produce", "Fetch")
        for attribute in ("byte_rate", "throttle_time")
    )
    assert len(TextReader().read(page.encode()).layout.columns) == 400
    assert len(parsed) == 4


def test_another_unit_is_followed() -> None:
    """A number is read in the unit of the page's current names after an agent's rules change."""
    reader = TextReader()
    line = b'kafka_server_quota_%s{resource="Produce",user="a"} 5\n'
    assert list(reader.read(line % b"throttle_time_seconds").values) == [5000.0]
    assert list(reader.read(line % b"throttle_time").values) == [5.0]
    assert list(reader.read(line % b"throttle_time_seconds").values) == [5000.0]
