from __future__ import annotations

import gzip
import math
import sys
from importlib.util import find_spec, module_from_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.utils import floatToGoString

from quotascope.exporter.exposition import OPENMETRICS, TEXT, TextFormat, accepts_gzip, choose_format, gzipped
from quotascope.exporter.exposition.lines import texts

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;"
    "version=0.0.4;q=0.3,*/*;q=0.2"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;"
    "q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        (BROWSER, TEXT),
        ("text/plain", TEXT),
        (PROMETHEUS_2, OPENMETRICS),
        (PROMETHEUS_3, OPENMETRICS),
        ("application/openmetrics-text", OPENMETRICS),
        ("Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8", OPENMETRICS),
        ("application/openmetrics-text;version=0.0.1", TEXT),
        ("application/openmetrics-text;version=2.0.0", TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0.1,text/plain;q=0.9", TEXT),
        ("application/openmetrics-text;version=1.0.0;q=0", TEXT),
        ("application/openmetrics-text;version=1.0.0;q=x", TEXT),
        (",;,=;", TEXT),
    ],
)
def test_format_is_the_one_that_is_preferred(accept: str, expected: TextFormat) -> None:
    """Prometheus gets OpenMetrics, all others the classic text."""
    assert choose_format(accept) is expected


@pytest.mark.parametrize(
    ("accept_encoding", "expected"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
    ],
)
def test_gzip_only_where_it_is_accepted(accept_encoding: str, *, expected: bool) -> None:
    """A client that cannot unpack gets plain text."""
    assert accepts_gzip(accept_encoding) is expected


BELOW = [math.nextafter(edge, 0) for edge in (1e-4, 1e6, 1e16)]
EDGES = (
    *(0.0, 1e-4, 1e6, 1e15, 1e16, 1e22, 5e-324, 1.7976931348623157e308, *BELOW),
    *(1234567.0, 1000001.0, -1e-5, -1e6, -1234567.5, -1e300, 0.1 + 0.2),
)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
    st.floats(1e-5, 1e-3),
    st.floats(1e5, 1e17),
    st.integers(-(2**80), 2**80),
    st.booleans(),
    st.sampled_from(EDGES),
)


@given(st.lists(NUMBERS))
def test_number_is_written_as_the_client_library_writes_it(values: list[float]) -> None:
    """Numbers are whole or not, small or huge."""
    expected = [floatToGoString(value).encode() for value in values]  # type: ignore[no-untyped-call]
    assert texts(np.array(values, np.float64)) == expected


def test_what_is_no_number_has_no_text_and_zero_no_sign() -> None:
    """An empty text stands for a series that is not shown; a value that turns from 0 to -0 has not changed."""
    for value in (None, math.nan, math.inf, -math.inf):
        assert texts(np.array([1.5, value, 2.5], np.float64)) == [b"1.5", b"", b"2.5"]
    assert texts(np.array([-0.0, 0.0])) == [b"0.0", b"0.0"]


LINES = b'kafka_quota_utilization_ratio{user="alice"} 0.5\n' * 2000


def test_gzip_is_plain_and_small() -> None:
    """The compressed text is small, and any client can unpack it."""
    packed = gzipped(LINES)
    assert gzip.decompress(packed) == LINES
    assert len(packed) < len(LINES) / 20


def test_gzip_works_where_isal_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform without the quick library is served by Python's own."""
    monkeypatch.setitem(sys.modules, "isal", None)
    spec = find_spec("quotascope.exporter.exposition.text")
    assert spec is not None
    assert spec.loader is not None
    slow = module_from_spec(spec)
    spec.loader.exec_module(slow)
    assert slow.implementation is gzip
    assert gzip.decompress(slow.gzipped(LINES)) == LINES
