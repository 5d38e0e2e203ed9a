"""Names of MBeans."""

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import HOSTILE, broken_texts, tag_maps, texts

from quotascope.metrics import (
    MalformedName,
    mbean_name,
    parse_object_name,
    quote_tag_value,
    unquote_tag_value,
)

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
    """Figures of Kafka's and Java's own classes."""
    assert quote_tag_value(value) == quoted


def test_68_characters_need_no_quotes() -> None:
    """ASCII letters, digits and six others, alone and together."""
    plain = string.ascii_letters + string.digits + "_-%. \t"
    unquoted = [
        chr(code) for code in range(0x3000) if quote_tag_value(chr(code)) == chr(code)
    ]
    assert sorted(unquoted) == sorted(plain)
    assert quote_tag_value(plain) == plain


@given(value=any_text)
def test_unquote_inverts(value: str) -> None:
    """Every value comes back, with quotes or without."""
    assert unquote_tag_value(quote_tag_value(value)) == value


@pytest.mark.parametrize(
    "text", ['"', '"a', '"a"b"', '"a*"', '"a\\b"', '"a\n"', '"a\\"', '"a"\n']
)
def test_refuses_bad_quotes(text: str) -> None:
    """What `ObjectName.quote` would not have written cannot be unquoted."""
    with pytest.raises(MalformedName):
        unquote_tag_value(text)


@pytest.mark.parametrize(
    ("group", "tags", "name"),
    [
        ("Produce", {"user": "", "client-id": "clientA"}, "kafka.server:type=Produce,client-id=clientA"),
        ("Produce", {"user": "alice", "client-id": ""}, "kafka.server:type=Produce,user=alice"),
        ("Produce", {"user": "", "client-id": ""}, "kafka.server:type=Produce"),
        ("Request", {}, "kafka.server:type=Request"),
        ("Produce", {"": "x", "client-id": "a:b*"}, 'kafka.server:type=Produce,client-id="a:b\\*"'),
    ],
)  # fmt: skip
def test_mbean_names(group: str, tags: dict[str, str], name: str) -> None:
    """Tags keep their order, and empty ones are left out."""
    assert mbean_name("kafka.server", group, tags) == name


@given(tags=tag_maps, seed=st.randoms(use_true_random=False))
def test_parsing_inverts_in_any_order(
    tags: dict[str, str], seed: random.Random
) -> None:
    """Agents may sort the keys: the tags come back all the same."""
    domain, colon, properties = mbean_name("kafka.server", "Produce", tags).partition(
        ":"
    )
    parts = [
        f"{key}={quote_tag_value(value)}" for key, value in tags.items() if value
    ] + ["type=Produce"]
    seed.shuffle(parts)
    expected = {
        "type": "Produce",
        **{key: value for key, value in tags.items() if value},
    }
    assert parse_object_name(domain + colon + properties) == ("kafka.server", expected)
    assert parse_object_name(domain + colon + ",".join(parts)) == (
        "kafka.server",
        expected,
    )


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_values_come_back(value: str) -> None:
    """Each name that would break a naive parser survives the way there and back."""
    name = mbean_name("kafka.server", "Fetch", {"user": value, "client-id": value})
    given_back = {"user": value, "client-id": value} if value else {}
    assert parse_object_name(name)[1] == {"type": "Fetch", **given_back}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kafka.server",
        "kafka.server:",
        "kafka.server:type",
        "kafka.server:=x",
        "kafka.server:type=a,",
        "kafka.server:type=a,type=b",
        "kafka.server:type=a,*",
        "kafka.*:type=a",
        "kafka.server:type=*",
        'kafka.server:type="a',
        'kafka.server:type="a"b',
        "kafka.server:type=a:b",
        "kafka.server:type=a=b",
        "kafka.server:type=a\n",
    ],
)
def test_refuses_what_names_no_mbean(text: str) -> None:
    """Patterns, repeated and unfinished properties are refused, as by Java's `ObjectName`."""
    with pytest.raises(MalformedName) as caught:
        parse_object_name(text)
    assert caught.value.text == text


def test_other_peoples_names() -> None:
    """Names that Kafka's other library writes are read too."""
    name = "kafka.network:type=RequestMetrics,name=ThrottleTimeMs,request=Produce"
    assert parse_object_name(name) == (
        "kafka.network",
        {"type": "RequestMetrics", "name": "ThrottleTimeMs", "request": "Produce"},
    )
    assert parse_object_name(":type=") == ("", {"type": ""})
