"""Text of jmx_exporter: recorded, and broken."""

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exporter.recorded import CAPTURES

from quotascope.exporter.errors import SourceUnreadable
from quotascope.exporter.sources.prometheus_text.samples import numbers_in

REAL = (CAPTURES / "combined/throttled.jmx_exporter.txt").read_bytes()


def test_only_lines_about_quotas_are_read() -> None:
    """A broker's text has thousands of lines; the rest is not even parsed."""
    keys, values = numbers_in(REAL)
    assert len(keys) == len(values) == 73
    assert all("jvm" not in name for name, _ in keys)


def test_nan_and_exponents_are_numbers() -> None:
    """Java writes 1.0E20 and NaN."""
    text = b'kafka_server_quota_tokens{resource="ControllerMutation",user="a"} 1.0E20\nkafka_server_quota_throttle_time{resource="Fetch",user="a"} NaN\n'
    _, (tokens, throttle) = numbers_in(text)
    assert tokens == 1e20
    assert isnan(throttle)


def test_older_versions_end_labels_with_a_comma() -> None:
    """jmx_exporter 0.x writes a comma after the last label."""
    keys, values = numbers_in(
        b'kafka_server_quota_byte_rate{resource="Produce",user="a",} 2.5\n'
    )
    assert keys == [
        ("kafka_server_quota_byte_rate", (("resource", "Produce"), ("user", "a")))
    ]
    assert values == [2.5]


def test_a_line_end_within_a_name_does_not_break_a_line() -> None:
    """Carriage returns and the like are part of a label's value."""
    keys, _ = numbers_in(
        'kafka_server_quota_byte_rate{resource="Fetch",clientId="\\"a\r\u2028b\\nc\\""} 1\n'.encode()
    )
    assert dict(keys[0][1])["clientId"] == '"a\r\u2028b\nc"'


@pytest.mark.parametrize(
    "text",
    [
        b'kafka_server_quota_byte_rate{resource="Produce" 1\n',
        b'kafka_server_quota_byte_rate{resource="Produce"} many\n',
        b"kafka_server_quota_byte_rate\n",
        b"\xff\xfe",
    ],
)
def test_a_malformed_line_is_unreadable(text: bytes) -> None:
    """A broken number must not pass for a missing one."""
    with pytest.raises(SourceUnreadable, match="not Prometheus text"):
        numbers_in(text)


@pytest.mark.parametrize(
    "text", [b"", b"<html>Sign in</html>", b"jvm_threads_current 1\n", b"{}"]
)
def test_text_without_kafka_is_unreadable(text: bytes) -> None:
    """The wrong port or the wrong process must not pass for a quiet broker."""
    with pytest.raises(SourceUnreadable, match="no metric of Kafka"):
        numbers_in(text)


@pytest.mark.parametrize(
    "line",
    [
        b'kafka_server_produce_byte_rate{user="a",client_id="b"} 1\n',
        b"kafka_server_produce_user_user_0_client_id_client_0_byte_rate 1\n",
        b"kafka_server_controllermutation_queue_size 0\n",
    ],
)
def test_other_rules_are_told_apart(line: bytes) -> None:
    """Confluent's rules and those of the KRaft example name quotas otherwise: the message says what to add."""
    with pytest.raises(SourceUnreadable, match=r"kafka-2_0_0\.yml"):
        numbers_in(line)


def test_a_kafka_without_quota_metrics_is_fine() -> None:
    """Before the first rule there is nothing to read."""
    assert numbers_in(b"kafka_server_brokerstate_value 3.0\n") == ([], [])


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_give_numbers_or_an_error_of_ours(noise: bytes, after: bool) -> None:  # noqa: FBT001
    """Nothing that an agent can answer ends in another error."""
    line = b'kafka_server_quota_byte_rate{resource="Produce",user="'
    try:
        keys, values = numbers_in(line + noise if after else noise)
    except SourceUnreadable:
        return
    assert len(keys) == len(values)
