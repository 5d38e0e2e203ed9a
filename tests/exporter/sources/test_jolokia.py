"""
Jolokia 1 and 2.

What an agent is asked for, recorded and broken answers, and an agent that cannot read all of a domain at once.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import isnan, nan

import pytest
from aiohttp import web
from tests.builders.agents import FAILED, MISSING, answered_by, item, items
from tests.exporter.recorded import CAPTURES, jolokia_bytes, numbers, table
from yarl import URL

from quotascope.exporter.errors import SourceDenied, SourceUnreadable
from quotascope.exporter.sources.jolokia import (
    REQUESTS,
    JolokiaSource,
    ReadRequest,
    bulk_request,
    columns_of,
    numbers_in,
)
from quotascope.exporter.sources.peer import HttpTarget

FIRST = REQUESTS[0]
CAPTURE = "combined/throttled.jolokia1.json"


def test_kafkas_own_domain_is_read_at_once() -> None:
    """One request reads all beans of the domain, by attribute names that only the wanted beans have."""
    first_request = json.loads(bulk_request())[0]
    assert first_request["mbean"] == "kafka.server:*"
    attributes = first_request["attribute"]
    assert {"byte-rate", "throttle-time", "request-time", "StartTimeMs"} <= {*attributes}
    assert not {"Count", "Mean", "Value"} & {*attributes}
    assert len({*attributes}) == len(attributes)


@pytest.mark.parametrize(
    ("reported", "number"),
    [
        (1.5, 1.5),
        (3, 3.0),
        ("12", 12.0),
        (None, nan),  # NaN has no JSON
        (10**400, nan),
        ("ERROR: gone", nan),
        ({}, nan),
        ([], nan),
        ([1.0], nan),
    ],
)
def test_values_are_numbers_or_nan(reported: object, number: float) -> None:
    """An agent may write longs as text, and with ignoreErrors it writes an error in place of a value."""
    beans = {"kafka.server:type=Produce,client-id=a": {"byte-rate": reported}}
    _, values = numbers_in(items(item(beans)), [FIRST])
    assert [*values] == pytest.approx([number], rel=0, nan_ok=True)


def test_what_strict_json_forbids_is_read_all_the_same() -> None:
    """A bare NaN, an exponent too large, and half a surrogate pair in a name are read."""
    text = b'[{"status": 200, "value": {"b": {"x": NaN, "y": 1e400}, "\\ud800": {"x": 2.5}}}]'
    keys, (nothing, infinite, number) = numbers_in(text, [FIRST])
    assert keys == [("b", ("x", "y")), ("\ud800", ("x",))]
    assert isnan(nothing)
    assert (infinite, number) == (float("inf"), 2.5)


PLUGIN = next(request for request in REQUESTS if request.pattern.startswith("io.strimzi"))
FORBIDDEN = {"status": 403, "error": "Reading attribute is forbidden"}


@pytest.mark.parametrize(("refusal", "request_"), [(MISSING, FIRST), (FORBIDDEN, PLUGIN)], ids=["404", "plugin"])
def test_what_is_missing_is_nothing_special(refusal: object, request_: ReadRequest) -> None:
    """Missing beans of a controller, or of a plugin that a policy forbids, are no error."""
    keys, values = numbers_in(items(refusal), [request_])
    assert (keys, values.size) == ([], 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (items(FORBIDDEN), f"{re.escape(FIRST.pattern)}.*forbidden.*jolokia-access\\.xml"),
        # an agent that refuses this host answers with one object
        (b'{"status": 403, "error": "Origin not allowed"}', r"\(403: Origin not allowed\)"),
    ],
)
def test_a_refusal_names_the_pattern_and_the_policy(text: bytes, reason: str) -> None:
    """A refusal of the agent names the pattern and the policy, so that operators learn what to permit."""
    with pytest.raises(SourceDenied, match=reason):
        numbers_in(text, [FIRST])


DEEP = b"[" * 900 + b"]" * 900


@pytest.mark.parametrize(
    "text",
    [
        *(items({"status": status, "error": "<b>\x1b[31m\nno" * 1000}) for status in (500, None, "x\n" * 500)),
        b'[{"status":%s}]' % DEEP,
        b'[{"status":500,"error":%s}]' % DEEP,
        b'[{"status":200,"value":%s}]' % DEEP,
        b'[{"status":200,"value":{"a":%s}}]' % DEEP,
    ],
)
def test_another_status_is_an_error_on_one_short_line(text: bytes) -> None:
    """A value in the place of a text or a number is shown without being written out, however long or deep it is."""
    with pytest.raises(SourceUnreadable) as caught:
        numbers_in(text, [FIRST])
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html><body>Sign in</body></html>",
        b"\xff\xfe\x00",
        b'[{"status": 200, "value": {"kafka.ser',
        b"[" * 100_000,
        b'{"agent": "1.7.2"}',
        b"[]",
        b"[1, 2]",
        b"[1]",
        b'[{"value": {}}]',
        b"9" * 5000,
        b"null",
    ],
)
def test_something_else_than_an_answer_is_unreadable(text: bytes) -> None:
    """A proxy's page, half an answer and hostile nesting all end in one readable error."""
    with pytest.raises(SourceUnreadable):
        numbers_in(text, [FIRST])


def test_the_text_of_another_agent_has_advice() -> None:
    """Prometheus text at the URL of Jolokia is an error with advice, as files of targets may list such agents."""
    with pytest.raises(SourceUnreadable, match="has the path /metrics"):
        numbers_in(b"# HELP x y\nx 1\n", [FIRST])


@pytest.mark.parametrize("value", ["[Object limit exceeded]", 7, None, [1]])
def test_an_answer_that_the_agent_cut_short_is_unreadable(value: object) -> None:
    """An answer that maxObjects cut is refused, since half a cluster must not look like all of it."""
    for cut in (value, {"kafka.server:type=Produce": value}):
        with pytest.raises(SourceUnreadable, match="maxObjects"):
            numbers_in(items(item(cut)), [FIRST])


@pytest.mark.parametrize("name", ["", "no colon", "kafka.server:type", 'kafka.server:type=Produce,user="x'])
def test_a_name_that_is_none_is_left_out(name: str) -> None:
    """A malformed bean name is left out, and the rest of the answer is read."""
    assert columns_of((name, ("byte-rate",))) == [None]


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    """JSON can hold what no UTF-8 can; the exposition must be able to write it."""
    name = 'kafka.server:type=Produce,client-id="a\ud800"'
    (column,) = columns_of((name, ("byte-rate",)))
    assert column is not None
    assert column.bean.get("client-id") == "a?"


def test_a_truncated_answer_is_an_error_wherever_it_is_cut() -> None:
    """No prefix of a real answer passes for an answer."""
    text = jolokia_bytes("combined/noquota.jolokia2.json")
    for length in range(0, len(text), 37):
        with pytest.raises(SourceUnreadable):
            numbers_in(text[:length], REQUESTS)


async def test_an_agent_that_cannot_read_a_domain_is_asked_type_by_type() -> None:
    """A bean that cannot be looked at, and is none of ours, costs another request now and then, but no number."""
    recorded = json.loads((CAPTURES / CAPTURE).read_text("utf-8"))
    requested: list[int] = []

    async def answer(request: web.Request) -> web.Response:
        patterns = [item["mbean"] for item in await request.json()]
        requested.append(len(patterns))
        answers = {**recorded, "kafka.server:*": FAILED}
        return web.json_response([answers.get(name, MISSING) for name in patterns])

    async with answered_by(answer) as server:
        source = JolokiaSource("a", HttpTarget(url=str(server.make_url("/jolokia"))))
        reads = [await source.read() for _ in range(1 + 20 + 1)]
        await source.close()
    assert requested == [14, 25] + [25] * 20 + [14, 25]
    last_table = reads[-1]
    ours, theirs = numbers(last_table), numbers(table(CAPTURE))
    assert ours.keys() == theirs.keys()


async def test_both_requests_of_a_read_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that fails late is not waited for as long again: the answer to the first request is the error."""
    requested: list[int] = []
    ended: list[int] = []

    @asynccontextmanager
    async def post(_url: URL, body: bytes, _names: object) -> AsyncIterator[bytearray]:
        requested.append(len(json.loads(body)))
        if len(requested) > 1:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(len(requested))
        yield bytearray(items(*[FAILED] * 14))

    target = HttpTarget(url="http://127.0.0.1:1/jolokia", timeout_seconds=0.0)
    source = JolokiaSource("a", target)
    monkeypatch.setattr(source._fetch, "asked", post)
    with pytest.raises(SourceUnreadable, match="no MBeanInfo"):
        await source.read()
    assert (requested, ended) == ([14, 25], [2])
    await source.close()


@pytest.mark.parametrize("node", ["1", "100"])
def test_versions_one_and_two_agree(node: str) -> None:
    """Jolokia 1, which sorts the keys of a name, and 2 give the same beans and numbers; rates may fall in between."""
    new = table(f"split/idle.{node}.jolokia2.json")
    old = table(f"split/idle.{node}.jolokia1.json")
    assert new.node_id == old.node_id == node
    new_numbers, right = numbers(new), numbers(old)
    quotas = {key for key in new_numbers if key[0].domain == "kafka.server"}
    assert quotas == {key for key in right if key[0].domain == "kafka.server"}
    rates = {"byte-rate", "request-time", "mutation-rate", "exempt-request-time"}
    for key in new_numbers.keys() & right.keys():
        if key[1] != "Count":
            near = pytest.approx(new_numbers[key], rel=0.03 * (key[1] in rates), nan_ok=True)
            assert right[key] == near, key
