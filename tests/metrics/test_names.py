"""Names of users, MBeans, metrics, addresses, and of what a client pushes."""

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import HOSTILE, broken_texts, tag_maps, texts

from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.extras.all_time import CumulativeCount, Value
from quotascope.metrics.engine.extras.telemetry_names import (
    TelemetryKind,
    telemetry_kind,
    telemetry_labels,
    telemetry_name,
)
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.rate import Rate
from quotascope.metrics.engine.stat import Gauge
from quotascope.metrics.engine.windowed import Avg, Max, WindowedCount, WindowedSum
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.host_address import host_address
from quotascope.metrics.kafka.jmx import mbean_name, parse_object_name, quote_tag_value, unquote_tag_value
from quotascope.metrics.kafka.principal import ANONYMOUS, Principal
from quotascope.metrics.kafka.sanitizer import desanitize, sanitize


@pytest.mark.parametrize(
    ("name", "sanitized"),
    [
        ("a b", "a%20b"),
        ("😀", "%F0%9F%98%80"),
        ("\ud83d\ude00", "%F0%9F%98%80"),
        ("\ud83d", "%3F"),
        ("\ude00\ud83d", "%3F%3F"),
        ("\n\x00", "%0A%00"),
        ("٣", "%D9%A3"),
    ],
)
def test_as_kafka_writes_it(name: str, sanitized: str) -> None:
    """Names are sanitized as by Kafka's own class on Java 17."""
    assert sanitize(name) == sanitized


@given(name=texts)
def test_desanitize_inverts(name: str) -> None:
    """Desanitizing inverts sanitizing for every name that is text."""
    assert desanitize(sanitize(name)) == name


@given(name=broken_texts)
def test_any_name_can_be_sanitized(name: str) -> None:
    """Halves of surrogate pairs are lost, but do no harm; what results is plain ASCII."""
    sanitized = sanitize(name)
    assert sanitized.isascii()
    assert sanitize(desanitize(sanitized)) == sanitized


def test_what_other_encoders_write_is_decoded() -> None:
    """A plus of another encoder is a space, and a name that was no text is decoded as far as possible."""
    assert desanitize("a+b%2bc") == "a b+c"
    assert desanitize("%FFa%E2%82") == "\ufffda\ufffd"


@pytest.mark.parametrize("text", ["%", "a%4", "%zz", "%%41", "% 1"])
def test_refuses_half_an_escape(text: str) -> None:
    """A percent sign without two hexadecimal digits is refused."""
    with pytest.raises(MalformedName) as caught:
        desanitize(text)
    assert caught.value.text == text


def test_a_principal_has_a_name_and_a_tag() -> None:
    """A tag that Kafka would have written otherwise is unchanged; a lone percent sign is in no sanitized name."""
    principal = Principal("CN=app,O=Org")
    assert (principal.name, principal.sanitized) == ("CN=app,O=Org", "CN%3Dapp%2CO%3DOrg")
    assert ANONYMOUS.sanitized == "ANONYMOUS"
    given = Principal.from_sanitized("a%3db")
    assert (given.name, given.sanitized) == ("a=b", "a%3db")
    assert given != Principal("a=b")
    assert hash(given) == hash(Principal.from_sanitized("a%3db"))
    assert given != "a=b"
    with pytest.raises(MalformedName):
        Principal.from_sanitized("100%")


any_text = texts | broken_texts


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("plain-1_2.3% \t", "plain-1_2.3% \t"),
        ("", ""),
        ("a:b*", '"a:b\\*"'),
        ('q"\\?', '"q\\"\\\\\\?"'),
        ("line\nbreak", '"line\\nbreak"'),
        ("return\r", '"return\r"'),
        ("é", '"é"'),
        ("a+b", '"a+b"'),
        ("a,b=c", '"a,b=c"'),
        ("\ud83d", '"\ud83d"'),
    ],
)
def test_quotes_as_kafka_does(value: str, quoted: str) -> None:
    """Names are quoted as by Kafka's and Java's own classes."""
    assert quote_tag_value(value) == quoted


def test_68_characters_need_no_quotes() -> None:
    """ASCII letters, digits and six others stand alone and together."""
    plain = string.ascii_letters + string.digits + "_-%. \t"
    unquoted = [chr(code) for code in range(0x3000) if quote_tag_value(chr(code)) == chr(code)]
    assert sorted(unquoted) == sorted(plain)
    assert quote_tag_value(plain) == plain


@given(value=any_text)
def test_unquote_inverts(value: str) -> None:
    """Every value comes back, with quotes or without."""
    assert unquote_tag_value(quote_tag_value(value)) == value


@pytest.mark.parametrize("text", ['"', '"a', '"a"b"', '"a*"', '"a\\b"', '"a\n"', '"a\\"', '"a"\n'])
def test_refuses_bad_quotes(text: str) -> None:
    """Text that `ObjectName.quote` cannot have written is not unquoted."""
    with pytest.raises(MalformedName):
        unquote_tag_value(text)


def test_a_tag_without_a_name_is_left_out() -> None:
    """A tag without a name is left out, as is one without a value, which tests/conformance has."""
    name = mbean_name("kafka.server", "Produce", {"": "x", "client-id": "a:b*"})
    assert name == 'kafka.server:type=Produce,client-id="a:b\\*"'


@given(tags=tag_maps, seed=st.randoms(use_true_random=False))
def test_parsing_inverts_in_any_order(tags: dict[str, str], seed: random.Random) -> None:
    """Agents may sort the keys: the tags come back all the same."""
    domain, colon, properties = mbean_name("kafka.server", "Produce", tags).partition(":")
    parts = [f"{key}={quote_tag_value(value)}" for key, value in tags.items() if value] + ["type=Produce"]
    seed.shuffle(parts)
    expected = ("kafka.server", {"type": "Produce", **{key: value for key, value in tags.items() if value}})
    assert parse_object_name(domain + colon + properties) == expected
    assert parse_object_name(domain + colon + ",".join(parts)) == expected


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_values_come_back(value: str) -> None:
    """Each name that would break a naive parser survives the way there and back."""
    name = mbean_name("kafka.server", "Fetch", {"user": value, "client-id": value})
    given_back = {"user": value, "client-id": value} if value else {}
    assert parse_object_name(name)[1] == {"type": "Fetch", **given_back}


@pytest.mark.parametrize(
    "text",
    [
        *("", "kafka.server", "kafka.server:", "kafka.server:type", "kafka.server:=x", "kafka.server:type=a,"),
        *("kafka.server:type=a,type=b", "kafka.server:type=a,*", "kafka.*:type=a", "kafka.server:type=*"),
        *('kafka.server:type="a', 'kafka.server:type="a"b', "kafka.server:type=a:b", "kafka.server:type=a=b"),
        "kafka.server:type=a\n",
        *('kafka.server:type="a"=,b=c', 'kafka.server:type="a"x,b=c', 'kafka.server:type="a",'),
    ],
)
def test_refuses_what_names_no_mbean(text: str) -> None:
    """Patterns, repeated and unfinished properties are refused, as by Java's `ObjectName`."""
    with pytest.raises(MalformedName) as caught:
        parse_object_name(text)
    assert caught.value.text == text


@pytest.mark.parametrize("sign", [*',~:*?="x', "\n", "\t"])
def test_any_sign_ends_a_value_in_quotes(sign: str) -> None:
    """Any character ends a value in quotes, as Java's `ObjectName` skips it."""
    assert parse_object_name(f':a="1"{sign}b=c') == ("", {"a": "1", "b": "c"})


def test_other_peoples_names() -> None:
    """Names that Kafka's other library writes are read too."""
    name = "kafka.network:type=RequestMetrics,name=ThrottleTimeMs,request=Produce"
    assert parse_object_name(name) == (
        "kafka.network",
        {"type": "RequestMetrics", "name": "ThrottleTimeMs", "request": "Produce"},
    )
    assert parse_object_name(":type=") == ("", {"type": ""})


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:0DB8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_spells_each_address_in_one_way(text: str, spelled: str) -> None:
    """IPv6 is spelled in full, and a mapped IPv4 address as IPv4."""
    assert host_address(text) == spelled


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "1.2.3.4\n", ":" * 9_999])
def test_refuses_what_is_no_address(text: str) -> None:
    """A name is refused as an address and not looked up."""
    with pytest.raises(MalformedName, match="not an IP address"):
        host_address(text)


@given(tags=tag_maps)
def test_the_order_of_tags_is_kept_but_does_not_count(tags: dict[str, str]) -> None:
    """Names with the same tags in another order are equal, and each keeps its own order."""
    backwards = dict(reversed(tags.items()))
    name, reordered = MetricName("n", "g", tags), MetricName("n", "g", backwards)
    assert name == reordered
    assert hash(name) == hash(reordered)
    assert list(reordered.tags) == list(backwards)


def test_all_but_the_description_counts() -> None:
    """Name, group and tags distinguish metrics; a caller may go on using the mapping it gave."""
    tags = {"a": "b"}
    name = MetricName("n", "g", tags, "one")
    tags["a"] = "c"
    assert name.tags == {"a": "b"}
    assert name == MetricName("n", "g", [("a", "b")], "two")
    for different in (MetricName("m", "g", name.tags), MetricName("n", "h", name.tags), MetricName("n", "g"), "n"):
        assert name != different


def test_telemetry_names() -> None:
    """A group that is only its suffix keeps it, and any prefix may come first; tests/conformance has the others."""
    assert telemetry_name(MetricName("metrics", "metrics")) == "org.apache.kafka.metrics.metrics"
    assert telemetry_name(MetricName("", ""), "p") == "p.."


def test_telemetry_labels() -> None:
    """Keys become words with underscores, values stay; the client-id is left out."""
    tags = {"client-id": "X", "Topic-Name": "A-b"}
    assert telemetry_labels(tags) == {"topic_name": "A-b"}
    with pytest.raises(MalformedName, match="same label"):
        telemetry_labels({"a-b": "1", "a_b": "2"})


def test_telemetry_kinds() -> None:
    """Cumulative and windowed counts are sums; everything else is a gauge."""
    sums = (CumulativeSum(), CumulativeCount(), WindowedCount())
    gauge = Gauge(lambda _config, _now: 1)
    gauges = (Avg(), Max(), Rate(), WindowedSum(), Value(), gauge)
    assert {telemetry_kind(stat) for stat in sums} == {TelemetryKind.SUM}
    assert {telemetry_kind(stat) for stat in gauges} == {TelemetryKind.GAUGE}
