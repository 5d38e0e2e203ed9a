"""Reads a node through its Jolokia agent, version 1 or 2: one bulk request for all quota beans."""

from __future__ import annotations

import asyncio
import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import nan
from reprlib import Repr
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray
from yarl import URL

from quotascope.metrics import MalformedName, parse_object_name

from ..errors import SourceDenied, SourceNotRead, SourceUnreadable
from ..mapping import ATTRIBUTES, SERVER, Attribute, Bean, BeanColumn, BeanLayout, BeanTable, wanted
from ..threads import answer_thread, pool_of_answer
from ..untrusted import shown
from .fetch import HttpFetch, HttpTarget
from .source import LayoutTracker, NodeId

Key = tuple[str, tuple[str, ...]]
"""The name of an MBean as the agent writes it, and of its attributes in their order."""

_HINT = "the usual path of a Jolokia agent is /jolokia, and its usual port 8778"
_READS_BY_TYPE: Final = 20
"""Reads by type after one read of everything has failed; then that is tried again, since the reason may be gone."""
_SHORT: Final = Repr()
"""Neither deep nor long, whatever the answer holds where a text or number belongs."""
_SHORT.maxstring = 300
_OK = 200
_FORBIDDEN = (401, 403)
_PIECE_BYTES: Final = 1 << 20
MOST_MARKS: Final = 2_000_000
"""Commas, colons and opening brackets of an answer, outside of its strings: 300,000 MBeans have as many, and take 64 MiB."""
_MARK: Final = re.compile(rb'[^"{\[,:]*+(?:"(?:[^"\\]|\\.)*+"[^"{\[,:]*+)*+(?:[{\[,:]|\Z)', re.DOTALL)
_NO_SUCH_BEAN = 404


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One read of all MBeans that a pattern matches."""

    pattern: str
    attributes: tuple[str, ...]
    """Empty for all attributes."""
    optional: bool = False
    """Whether the agent may refuse it."""


def _reads_by_type() -> Iterator[ReadRequest]:
    by_pattern: dict[str, list[Attribute]] = {}
    for attribute in ATTRIBUTES:
        if attribute.brokers_have_it:
            # mostly a pattern even for a single bean: one that is missing costs nothing
            by_pattern.setdefault(attribute.pattern, []).append(attribute)
    for pattern, attributes in by_pattern.items():
        # quota beans have nothing but what is wanted; naming it would save no byte
        all_of_it = any(attribute.quota_type for attribute in attributes)
        names = {} if all_of_it else dict.fromkeys(each.name for each in attributes)
        yield ReadRequest(pattern, tuple(names), attributes[0].optional)


BY_TYPE: Final = tuple(_reads_by_type())
"""One read for each kind of bean: for agents that cannot read all of a domain."""

REQUESTS: Final = (
    ReadRequest(
        f"{SERVER}:*",
        tuple(
            dict.fromkeys(
                each.name for each in ATTRIBUTES if each.brokers_have_it and each.domain == SERVER and not each.optional
            )
        ),
    ),
    *(each for each in BY_TYPE if each.optional or not each.pattern.startswith(f"{SERVER}:")),
)
"""
The same numbers in fewer reads, in the order in which the agent answers them: one domain by the names of its attributes, which no other beans have; beans that are known by name are looked up.

For each pattern of key properties the JVM looks at every bean of the domain, and at 15,000 of them for as long
as it takes to read a tenth of them. Going by attributes it looks once, and the agent leaves out beans that have none.
"""


@cache
def bulk_request(requests: Sequence[ReadRequest] = REQUESTS) -> bytes:
    """The body of one POST for all of these."""
    return json.dumps(
        [
            {"type": "read", "mbean": request.pattern}
            | ({"attribute": list(request.attributes)} if request.attributes else {})
            for request in requests
        ]
    ).encode()


def numbers_in(answer: bytes, requests: Sequence[ReadRequest]) -> tuple[list[Key], NDArray[np.float64]]:
    """
    Which attributes of which MBeans are in an answer, and the numbers of all, one MBean after the other.

    A pattern that matches no MBean is nothing special: a broker has no controller's
    beans. Raises ``SourceUnreadable`` and ``SourceDenied``.
    """
    keys: list[Key] = []
    values: list[object] = []
    for request, item in zip(requests, _items(answer, len(requests)), strict=True):
        beans = _beans(request, item)
        keys += zip(beans, map(tuple, beans.values()), strict=True)
        values += chain.from_iterable(map(dict.values, beans.values()))
    with suppress(TypeError, ValueError, OverflowError):
        numbers = np.array(values, np.float64)  # in which null is NaN
        if numbers.ndim == 1:  # lists of one length become a table
            return keys, numbers
    return keys, np.fromiter(map(_number, values), np.float64, len(values))


def columns_of(key: Key) -> list[BeanColumn | None]:
    """The column of each attribute of a key, None for one that is not used."""
    name, attributes = key
    try:
        bean = Bean.of(*parse_object_name(name))
    except MalformedName:
        return [None] * len(attributes)
    return [wanted(BeanColumn(bean, attribute)) for attribute in attributes]


def _items(answer: bytes, count: int) -> list[object]:
    if _is_too_much(answer):
        raise SourceUnreadable(
            f"the answer holds more than {MOST_MARKS:,} values, which is not a list of quota beans: is this a Jolokia agent?"
        )
    try:
        try:
            decoded: object = orjson.loads(answer)
        except ValueError:
            # It is stricter: Java's maps and strings can hold NaN and halves of surrogate pairs.
            decoded = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise SourceUnreadable(
            f"the answer is not JSON, or only a part of it ({shown(error)}): is this a Jolokia agent? "
            "One that answers Prometheus text has the path /metrics"
        ) from error
    if isinstance(decoded, dict) and "status" in decoded:
        raise _refused("the request", decoded)
    if not isinstance(decoded, list) or len(decoded) != count:
        raise SourceUnreadable(f"the answer is not a list of {count} items: is this a Jolokia agent?")
    return decoded


def _is_too_much(answer: bytes) -> bool:
    """
    Whether an answer holds more values than any node has, each of which takes a hundred bytes when it is decoded.

    Looked for before that, since two bytes of text are enough for one. Names hold such marks as well, so they are
    left out where it matters.
    """
    at_most = 0
    for start in range(0, len(answer), _PIECE_BYTES):  # others get their turn between
        piece = answer[start : start + _PIECE_BYTES]
        at_most += len(piece) - len(piece.translate(None, b",:{["))
    if at_most <= MOST_MARKS:
        return False
    # a loop of Python's own, which lets others have their turn as well
    return any(number >= MOST_MARKS for number, _ in enumerate(_MARK.finditer(answer)))


def _beans(request: ReadRequest, item: object) -> dict[str, dict[str, object]]:
    if not isinstance(item, dict):
        raise SourceUnreadable("an item of the answer is not an object: is this Jolokia?")
    status = item.get("status")
    if status == _NO_SUCH_BEAN or (request.optional and status in _FORBIDDEN):
        return {}
    if status != _OK:
        raise _refused(request.pattern, item)
    value = item.get("value")
    if not isinstance(value, dict):
        raise _cut_short(request.pattern, value)
    if not request.pattern.endswith("*"):
        value = {request.pattern: value}
    for bean, attributes in value.items():
        if not isinstance(attributes, dict):
            raise _cut_short(bean, attributes)
    return value


def _refused(what: str, item: Mapping[str, object]) -> SourceDenied | SourceUnreadable:
    status, error = _brief(item.get("status")), _brief(item.get("error"))
    if item.get("status") in _FORBIDDEN:
        return SourceDenied(
            f"Jolokia refuses {what} ({status}: {error}): its policy (jolokia-access.xml) must let this host read "
            "kafka.server, kafka.network and kafka.controller"
        )
    return SourceNotRead(f"Jolokia cannot read {what} ({status}: {error})")


def _cut_short(what: str, value: object) -> SourceUnreadable:
    return SourceUnreadable(
        f"Jolokia gave {shown(_SHORT.repr(value))} for {shown(what)}: "
        "an agent with maxObjects, maxCollectionSize or maxDepth set cuts its answers; unset them"
    )


def _brief(value: object) -> str:
    """A text as it is, anything else as Python writes its beginning."""
    return shown(value if isinstance(value, str) else _SHORT.repr(value))


def _number(value: object) -> float:
    """The number; NaN for null, and for an error in place of a value."""
    if not isinstance(value, (int, float, str)):
        return nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return nan


class JolokiaSource:
    """
    One broker or controller behind a Jolokia agent.

    Args:
        name: The label ``source``.
        target: Where the agent answers.

    """

    dialect = "jolokia"

    def __init__(self, name: str, target: HttpTarget) -> None:
        self.name, self.node_id = name, target.node_id
        self._fetch = HttpFetch(target, _HINT)
        agent = URL(target.url)
        # an error of one attribute must not spoil an answer: sensors expire while the agent reads them
        options = {"ignoreErrors": "true", "includeRequest": "false"}
        self._url = agent.with_path(f"{agent.path.rstrip('/')}/").with_query({**agent.query, **options})
        self._tracker = LayoutTracker(columns_of)
        self._decoding = answer_thread()
        self._node_id = NodeId(target.node_id)
        self._reads_by_type = 0
        self._timeout_seconds = target.timeout_seconds

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``."""
        self._decoding.check()
        requests = BY_TYPE if self._reads_by_type else REQUESTS
        self._reads_by_type = max(0, self._reads_by_type - 1)
        ends = asyncio.get_running_loop().time() + self._timeout_seconds
        try:
            layout, values = await self._asked_for(requests)
        except SourceNotRead as error:
            if requests is BY_TYPE:
                raise
            # A bean of another product that cannot be looked at, or Jolokia 1 while a node starts, which has none yet.
            try:
                async with asyncio.timeout_at(ends):
                    layout, values = await self._asked_for(BY_TYPE)
            except TimeoutError:
                raise error from None
            self._reads_by_type = _READS_BY_TYPE
        return BeanTable(node_id=self._node_id.of(layout), layout=layout, values=values)

    async def _asked_for(self, requests: Sequence[ReadRequest]) -> tuple[BeanLayout, array[float]]:
        answer = await self._fetch.read(self._url, bulk_request(requests))
        return await self._decoding.run(
            lambda: self._tracker.place(*numbers_in(answer, requests)), pool_of_answer(len(answer))
        )

    async def close(self) -> None:
        """Release connections."""
        await self._fetch.close()
