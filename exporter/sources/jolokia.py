"""Reads a node through its Jolokia agent, version 1 or 2: one bulk request for all quota beans."""

from __future__ import annotations

import asyncio
import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from math import nan
from reprlib import Repr
from typing import Final, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray
from yarl import URL

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.jmx import parse_object_name

from ..coverage import Coverage, Unplaced
from ..errors import AnswerTooLong, SourceDenied, SourceNotRead, SourceUnreachable, SourceUnreadable
from ..mapping import ATTRIBUTES, SERVER, Attribute, Bean, BeanColumn, BeanLayout, BeanTable, wanted
from ..threads import ANSWERS, answer_thread
from ..untrusted import shown
from .budget import COST_OF_JSON, COST_OF_MARK, DECODING
from .fetch import HttpFetch
from .peer import MEBIBYTE, HttpTarget
from .shortening import LONG, LongNames
from .source import MOST_NUMBERS, CoverageTracker, LayoutTracker, NodeId

Key = tuple[str, tuple[str, ...]]
"""The name of an MBean as the agent writes it, and the names of its attributes in order."""

_HINT = "the usual path of a Jolokia agent is /jolokia, and its usual port 8778"
_READS_BY_TYPE: Final = 20
"""Reads by type after a read of everything has failed; then that read is tried again, since the reason may be gone."""
_SHORT: Final = Repr()
"""Printer of a part of an answer in a message, which is neither deep nor long whatever stands in it."""
_SHORT.maxstring = 300
_OK = 200
_FORBIDDEN = (401, 403)
_PIECE_BYTES: Final = 1 << 20
MOST_MARKS: Final = 2_000_000
"""
Commas, colons and opening brackets of an answer, outside of its strings: 300,000 MBeans have as many, and take 64 MiB.
"""
_MARK: Final = re.compile(rb'[^"{\[,:]*+(?:"(?:[^"\\]|\\.)*+"[^"{\[,:]*+)*+(?:[{\[,:]|\Z)', re.DOTALL)
_NO_SUCH_BEAN = 404


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One read of all MBeans that a pattern matches."""

    pattern: str
    attributes: tuple[str, ...]
    """Empty for all attributes."""
    optional: bool = False
    """True if the agent may refuse it."""


def _reads_by_type() -> Iterator[ReadRequest]:
    """Yield one read for each pattern of MBeans that an attribute of the mapping has."""
    by_pattern: dict[str, list[Attribute]] = {}
    for attribute in ATTRIBUTES:
        # mostly patterns, even for single beans: a pattern without a match costs nothing
        by_pattern.setdefault(attribute.pattern, []).append(attribute)
    for pattern, attributes in by_pattern.items():
        # all attributes of quota beans are wanted; naming them would save no byte
        is_quota_bean = any(attribute.quota_type for attribute in attributes)
        names = {} if is_quota_bean else dict.fromkeys(attribute.name for attribute in attributes)
        yield ReadRequest(pattern, tuple(names), attributes[0].optional)


BY_TYPE: Final = tuple(_reads_by_type())
"""One read for each kind of bean: for agents that cannot read all of a domain."""

REQUESTS: Final = (
    ReadRequest(
        f"{SERVER}:*",
        tuple(
            dict.fromkeys(
                attribute.name for attribute in ATTRIBUTES if attribute.domain == SERVER and not attribute.optional
            )
        ),
    ),
    *(request for request in BY_TYPE if request.optional or not request.pattern.startswith(f"{SERVER}:")),
)
"""
The same numbers in fewer reads, in the order in which the agent answers them: one domain by the names of its
attributes, which no other beans have; beans that are known by name are looked up.

For each pattern of key properties the JVM looks at every bean of the domain, and at 15,000 of them for as long
as it takes to read a tenth of them. Going by attributes it looks once, and the agent leaves out beans that have none.
"""


@cache
def bulk_request(requests: Sequence[ReadRequest] = REQUESTS) -> bytes:
    """Return the body of one POST for all of these reads."""
    items: list[dict[str, object]] = []
    for request in requests:
        item: dict[str, object] = {"type": "read", "mbean": request.pattern}
        if request.attributes:
            item["attribute"] = list(request.attributes)
        items.append(item)
    return json.dumps(items).encode()


def numbers_in(
    answer: bytes | bytearray, requests: Sequence[ReadRequest], names: LongNames | None = None
) -> tuple[list[Key], NDArray[np.float64]]:
    """
    Return the attributes of MBeans that are in an answer, and the numbers of all, one MBean after the other.

    A pattern may match no MBean: a broker has no beans of a controller. With ``names``, short names stand for long
    ones. A ``bytearray`` is used up. Raises ``SourceUnreadable`` and ``SourceDenied``.
    """
    keys: list[Key] = []
    values: list[object] = []
    for request, item in zip(requests, _items(answer, len(requests)), strict=True):
        beans = _beans(request, item)
        has_long_names = max(map(len, beans), default=0) >= LONG
        names_of_beans = map(names.short, beans) if names is not None and has_long_names else beans
        keys += zip(names_of_beans, map(tuple, beans.values()), strict=True)
        values += chain.from_iterable(map(dict.values, beans.values()))
    with suppress(TypeError, ValueError, OverflowError):
        numbers = np.array(values, np.float64)  # in which null is NaN
        if numbers.ndim == 1:  # lists of one length become a table
            return keys, numbers
    # some value is no number
    return keys, np.fromiter(map(_number, values), np.float64, len(values))


def columns_of(key: Key, names: LongNames | None = None) -> list[BeanColumn | None]:
    """Return the column of each attribute of a key, None for one that is not used."""
    name, attributes = key
    try:
        bean = names.bean(name) if names else Bean.of(*parse_object_name(name))
    except MalformedName:
        bean = None
    if bean is None:
        return [None] * len(attributes)
    return [wanted(BeanColumn(bean, attribute)) for attribute in attributes]


def _items(answer: bytes | bytearray, count: int) -> list[object]:
    """
    Return the items of an answer to ``count`` reads. A ``bytearray`` is used up.

    Raises ``SourceUnreadable`` for an answer of another form, and ``SourceDenied``.
    """
    if _is_too_much(answer):
        raise SourceUnreadable(
            f"the answer holds more than {MOST_MARKS:,} values, which is not a list of quota beans: is this a "
            "Jolokia agent?"
        )
    try:
        try:
            decoded: object = orjson.loads(answer)
        except ValueError:
            # It is stricter: Java's maps and strings can hold NaN and halves of surrogate pairs.
            decoded = json.loads(answer)
        if isinstance(answer, bytearray):
            answer.clear()  # the names are not held twice
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


def _mark_counts(answer: bytes | bytearray) -> Iterator[int]:
    """
    Yield for each MiB of an answer the number of marks that stand between values (``,:{[``), or within names.

    A caller can let other tasks run between two MiB.
    """
    for start in range(0, len(answer), _PIECE_BYTES):
        piece = answer[start : start + _PIECE_BYTES]
        yield len(piece) - len(piece.translate(None, b",:{["))


def _is_too_much(answer: bytes | bytearray) -> bool:
    """
    Return whether an answer holds more values than any node has.

    A decoded value takes a hundred bytes, and its text may be as short as two: so the marks between values are counted
    first. Names hold such marks, too; they are left out only where the first count is too high.
    """
    if sum(_mark_counts(answer)) <= MOST_MARKS:
        return False
    # a loop of Python, which lets other threads run, unlike one search of the whole answer
    return any(number >= MOST_MARKS for number, _ in enumerate(_MARK.finditer(answer)))


def _beans(request: ReadRequest, item: object) -> dict[str, dict[str, object]]:
    """
    Return the values of attributes in an item of an answer, by the name of the MBean and of the attribute.

    Raises ``SourceUnreadable`` and ``SourceDenied``.
    """
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
    if not request.pattern.endswith("*"):  # one bean by its name, of which Jolokia gives the attributes alone
        value = {request.pattern: value}
    for bean, attributes in value.items():
        if not isinstance(attributes, dict):
            raise _cut_short(bean, attributes)
    return value


def _refused(what: str, item: Mapping[str, object]) -> SourceDenied | SourceUnreadable:
    """Return the error of an item or answer with another status than 200; ``what`` was to be read."""
    status, error = _brief(item.get("status")), _brief(item.get("error"))
    if item.get("status") in _FORBIDDEN:
        return SourceDenied(
            f"Jolokia refuses {what} ({status}: {error}): its policy (jolokia-access.xml) must let this host read "
            "kafka.server, kafka.network and kafka.controller"
        )
    return SourceNotRead(f"Jolokia cannot read {what} ({status}: {error})")


def _cut_short(what: str, value: object) -> SourceUnreadable:
    """Return the error of a value that is no object, as an agent with bounds on its answers writes it."""
    return SourceUnreadable(
        f"Jolokia gave {shown(_SHORT.repr(value))} for {shown(what)}: "
        "an agent with maxObjects, maxCollectionSize or maxDepth set cuts its answers; unset them"
    )


def _brief(value: object) -> str:
    """Return a text unchanged, and of anything else the beginning as Python writes it."""
    return shown(value if isinstance(value, str) else _SHORT.repr(value))


def _number(value: object) -> float:
    """Return the number; NaN for null, and for an error in place of a value."""
    if not isinstance(value, (int, float, str)):
        return nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return nan


_Answer: TypeAlias = tuple[BeanLayout, "array[float]", Coverage]


class JolokiaSource:
    """
    One broker or controller behind a Jolokia agent.

    Args:
        name: The label ``source``.
        target: Address and login of the agent.

    """

    dialect = "jolokia"

    def __init__(self, name: str, target: HttpTarget) -> None:
        self.name, self.node_id = name, target.node_id
        self._fetch = HttpFetch(target, _HINT)
        agent = URL(target.url)
        # an error of one attribute must not spoil an answer: sensors expire while the agent reads them
        options = {"ignoreErrors": "true", "includeRequest": "false"}
        self._url = agent.with_path(f"{agent.path.rstrip('/')}/").with_query({**agent.query, **options})
        self._covered = CoverageTracker(complete=True)
        self._names = LongNames()
        self._tracker = LayoutTracker(partial(columns_of, names=self._names), lambda key: key[0])
        self._decoding = answer_thread()
        self._node_id = NodeId(target.node_id)
        self._reads_by_type = self._reads_in_parts = 0
        self._most_bytes = target.max_bytes
        self._timeout_seconds = target.timeout_seconds

    async def read(self) -> BeanTable:
        """Return the quota beans as they are now. Raises ``SourceError``."""
        self._decoding.check()
        deadline = asyncio.get_running_loop().time() + self._timeout_seconds
        layout, values, coverage = await self._asked(deadline)
        return BeanTable(node_id=self._node_id.of(layout), layout=layout, values=values, coverage=coverage)

    async def _asked(self, deadline: float) -> _Answer:
        """Return the agent's answer until the deadline: to one request, or else to several smaller ones."""
        if self._reads_in_parts:
            self._reads_in_parts -= 1
            return await self._in_parts(deadline)
        requests = BY_TYPE if self._reads_by_type else REQUESTS
        self._reads_by_type = max(0, self._reads_by_type - 1)
        try:
            return await self._asked_for(requests)
        except AnswerTooLong:
            answer = await self._in_parts(deadline)
            self._reads_in_parts = _READS_BY_TYPE
            return answer
        except SourceNotRead as error:
            if requests is BY_TYPE:
                raise
            # A bean of another product that cannot be looked at, or Jolokia 1 while a node starts, which has none yet.
            try:
                async with asyncio.timeout_at(deadline):
                    answer = await self._asked_for(BY_TYPE)
            except TimeoutError:
                raise error from None
            self._reads_by_type = _READS_BY_TYPE
            return answer

    async def _asked_for(self, requests: Sequence[ReadRequest]) -> _Answer:
        """Return the agent's answer to one request for all of these reads."""
        keys, numbers = await self._numbers(requests)
        return await self._decoding.run(lambda: self._placed(keys, numbers), ANSWERS)

    async def _in_parts(self, deadline: float) -> _Answer:
        """Ask for each kind of bean separately, so that an answer that is too long costs only its own kind."""
        keys: list[Key] = []
        numbers: list[NDArray[np.float64]] = []
        lost_parts: list[str] = []
        try:
            async with asyncio.timeout_at(deadline):
                for request in BY_TYPE:
                    try:
                        part_keys, values = await self._numbers((request,))
                    except AnswerTooLong:
                        lost_parts.append(request.pattern)
                        if len(lost_parts) > len(QuotaType):  # more parts than quota types: clients are not the reason
                            raise
                    else:
                        keys += part_keys
                        numbers.append(values)
        except TimeoutError:
            raise SourceUnreachable(
                f"no complete answer within {self._timeout_seconds:g} s, although it was asked for in parts, "
                f"because all of it is longer than {self._most_bytes / MEBIBYTE:g} MiB (max_answer_bytes)"
            ) from None
        unplaced = None
        if lost_parts:
            text = (
                f"{' and '.join(map(shown, lost_parts))} left out, because the answer is longer than "
                f"{self._most_bytes / MEBIBYTE:g} MiB (max_answer_bytes)"
            )
            unplaced = Unplaced(count=len(lost_parts), example=lost_parts[0], labels=(), lost=text)
        values = np.concatenate(numbers) if numbers else np.empty(0)
        return await self._decoding.run(lambda: self._placed(keys, values, unplaced), ANSWERS)

    async def _numbers(self, requests: Sequence[ReadRequest]) -> tuple[list[Key], NDArray[np.float64]]:
        """Return the numbers of one answer."""
        async with self._fetch.asked(self._url, bulk_request(requests), self._names) as answer:
            cost = COST_OF_JSON * len(answer)
            for mark_count in _mark_counts(answer):
                cost += COST_OF_MARK * mark_count
                await asyncio.sleep(0)
            async with DECODING.turn(cost):
                return await self._decoding.run(lambda: numbers_in(answer, requests, self._names), ANSWERS)

    def _placed(self, keys: list[Key], numbers: NDArray[np.float64], lost: Unplaced | None = None) -> _Answer:
        """Return the layout, numbers and coverage of an answer, of which some parts may be ``lost``."""
        try:
            layout, values = self._tracker.place(keys, numbers)
        except SourceUnreadable:
            self._fetch.doubtful = len(numbers) > MOST_NUMBERS // 10
            raise
        self._names.keep_only({name for name, _ in keys})
        return layout, values, self._covered.of(layout).without(lost)

    async def close(self) -> None:
        """Release connections."""
        self._tracker.close()
        await self._fetch.close()
