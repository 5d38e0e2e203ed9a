"""Reads a node through an agent that answers Prometheus text: jmx_exporter, Strimzi's metrics-reporter, or the like."""

from __future__ import annotations

import codecs
import re
from array import array
from dataclasses import dataclass
from operator import mul
from typing import Final

from ..errors import SourceUnreadable
from ..mapping import BeanColumn, BeanLayout, BeanTable, attribute_of
from ..threads import answer_thread, pool_of_answer
from ..untrusted import shown
from .dialects import MANGLED_ADVICE, MANGLED_NAME, TextDialect, detected, has_line
from .fetch import HttpFetch, HttpTarget
from .source import LayoutTracker, NodeId

UNDETECTED: Final = "prometheus"
"""The dialect of an agent that has not shown any yet."""
_HINT: Final = "the usual path of a Prometheus agent is /metrics"
_NO_DIALECT: Final = (
    "no metric has a name that a known dialect uses for quotas: check the agent's rules, "
    "or use those that `quotascope rules jmx-exporter` writes"
)


class PrometheusTextSource:
    """
    One broker or controller behind jmx_exporter, Strimzi's metrics-reporter, or the like.

    Args:
        name: The label ``source``.
        target: Where the agent answers.
        forced: The dialect of its answers, or None to find out from each.

    """

    def __init__(self, name: str, target: HttpTarget, forced: TextDialect | None = None) -> None:
        self.name, self.node_id = name, target.node_id
        self._fetch = HttpFetch(target, _HINT)
        self._reader = TextReader(forced)
        self._decoding = answer_thread()
        self._node_id = NodeId(target.node_id)

    @property
    def dialect(self) -> str:
        """The label ``dialect``: what the last answer was in, ``prometheus`` until one shows it."""
        return self._reader.dialect

    async def read(self) -> BeanTable:
        """The quota beans as they are now. Raises ``SourceError``."""
        self._decoding.check()
        answer = await self._fetch.read()
        page = await self._decoding.run(lambda: self._reader.read(answer), pool_of_answer(len(answer)))
        if not answer.endswith(b"\n"):
            raise SourceUnreadable(
                "the answer ends in the middle of a line, so there should be more of it: does the agent, or a proxy before it, cut it?"
            )
        try:
            node_id = self._node_id.of(page.layout)
        except SourceUnreadable as error:
            raise SourceUnreadable(page.mistake or str(error)) from None
        return BeanTable(node_id=node_id, layout=page.layout, values=page.values, remark=page.remark, hint=page.hint)

    async def close(self) -> None:
        """Release connections."""
        await self._fetch.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """What one page held."""

    layout: BeanLayout
    values: array[float]
    remark: str | None = None
    """What is wrong with it although it could be read."""
    hint: str | None = None
    """What to check, because it has no series of any entity."""
    mistake: str | None = None
    """Which dialect it is in instead of the one that is forced, when it has no series of any entity."""


class TextReader:
    """
    Detects the dialect of each page, and keeps what it learned of its series.

    Args:
        forced: The dialect of all pages, or None to detect it.

    """

    def __init__(self, forced: TextDialect | None = None) -> None:
        self._forced = forced
        self._dialect = forced
        self._tracker = LayoutTracker(self._columns_of)
        self._layout = BeanLayout(())
        self._has_entities = False
        self._factors: list[float] | None = None

    @property
    def dialect(self) -> str:
        """Of the last page that showed one."""
        return self._dialect.name if self._dialect else UNDETECTED

    def read(self, answer: bytes) -> TextPage:
        """The columns and numbers of a page. Raises ``SourceUnreadable``."""
        page = page_of(answer)
        found = self._forced or detected(page)
        if found is not None and found is not self._dialect:
            self._dialect = found
            self._tracker = LayoutTracker(self._columns_of)
        prefixes = self._dialect.prefixes if self._dialect else ()
        keys, numbers = numbers_in(page, prefixes)
        if not keys and not has_line(page, ("kafka_",)):
            raise SourceUnreadable(
                "the answer holds no metric of Kafka: is this the metrics agent of a broker or controller, "
                "and do its rules name Kafka's metrics kafka_…?"
            )
        layout, values = self._tracker.place(keys, numbers)
        if layout is not self._layout:
            self._layout = layout
            attributes = ((each, attribute_of(each)) for each in layout.columns)
            self._has_entities = any(
                attribute is not None and attribute.quota_type is not None and len(column.bean.properties) > 1
                for column, attribute in attributes
            )
            factor_of = self._dialect.factor_of if self._dialect else None
            self._factors = factor_of and [factor_of(each) for each in layout.columns]
        if self._factors is not None:
            values = array("d", map(mul, values, self._factors))
        remark = self._remark(page)
        if self._has_entities:
            return TextPage(layout=layout, values=values, remark=remark)
        mistake, other = None, detected(page) if self._forced else None
        if self._forced and other and other is not self._forced:
            mistake = f"the configuration says dialect {self._forced.name}, but the answer is in {other.name}"
        hint = mistake or (self._dialect.advice if self._dialect else _NO_DIALECT)
        return TextPage(layout=layout, values=values, remark=remark, hint=hint, mistake=mistake)

    def _remark(self, page: str) -> str | None:
        """Which name holds a user or client-id, beside entities that could be read. Raises ``SourceUnreadable`` when there are none."""
        mangled = MANGLED_NAME.search(page)
        if mangled is None:
            return None
        text = (
            f"this agent's rules put user and client-id into names of metrics ({shown(mangled[1])}), "
            f"from which they cannot be recovered: {MANGLED_ADVICE}"
        )
        if not self._has_entities:
            raise SourceUnreadable(text)
        return text

    def _columns_of(self, key: SampleKey) -> list[BeanColumn | None]:
        if self._dialect is None:
            return [None]
        key = text_of(key)
        try:
            return [self._dialect.column_of(*parse_series(key))]
        except ValueError as error:
            raise SourceUnreadable(f"the answer is not Prometheus text: {error} ({shown(key)})") from None


SampleKey = str
"""Name and labels of a sample, as the agent writes them: one that was seen before need not be parsed again."""

_SAMPLE: Final = re.compile(r'([^{ \t]*+(?:[ \t]*+\{(?:[^"}]|"(?:[^"\\]|\\.)*+")*+\})?)(.*)', re.DOTALL)
_EXEMPLAR: Final = " # "


MOST_LINES: Final = 1_000_000
"""Of a page: 64 MiB of an agent's own lines are 700,000."""
MOST_LINE_CHARACTERS: Final = 1 << 20
"""Of a sample: user and client-id have 32 kB each, which quoting and escaping can make six times as long."""
_PIECE_BYTES: Final = 1 << 20


def page_of(answer: bytes) -> str:
    """
    The text of an answer with a line end before it, a character for each of its bytes.

    A single character beyond the first 65,536 would make a text of Python four times as long as its bytes. Almost all of a page is
    never needed, so ``text_of`` decodes the few parts that are. Raises ``SourceUnreadable`` for what is no text, or too many lines.
    """
    starts = range(0, len(answer), _PIECE_BYTES)  # others get their turn between
    if sum(answer.count(b"\n", at, at + _PIECE_BYTES) for at in starts) > MOST_LINES:
        raise SourceUnreadable(
            f"the answer has more than {MOST_LINES:,} lines: is this a metrics agent, and of one node?"
        )
    if not answer.isascii():
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for start in starts:
                decoder.decode(answer[start : start + _PIECE_BYTES])
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise SourceUnreadable(
                f"the answer is not Prometheus text ({shown(error)}): is this a metrics agent?"
            ) from error
    return (b"\n" + answer).decode("latin-1")


def text_of(part: str) -> str:
    """A part of a page, decoded."""
    return part if part.isascii() else part.encode("latin-1").decode(errors="replace")


def numbers_in(text: str, prefixes: tuple[str, ...]) -> tuple[list[SampleKey], list[float]]:
    """
    The samples of the lines that begin with one of ``prefixes``, and their numbers.

    Understands the text format 0.0.4 and OpenMetrics: timestamps and exemplars are left
    out. Raises ``SourceUnreadable`` when a line has no number; labels are not checked.
    """
    lines = text.split("\n")
    if text.startswith((" ", "\t")) or "\n " in text or "\n\t" in text:
        lines = [line.lstrip(" \t") for line in lines]
    wanted = [line for line in lines if line.startswith(prefixes)]
    if max(map(len, wanted), default=0) > MOST_LINE_CHARACTERS:
        raise SourceUnreadable(
            f"the answer has a sample of more than {MOST_LINE_CHARACTERS:,} characters: is this a metrics agent?"
        )
    ends = [_end_of_key(line) for line in wanted]
    keys = [line[:end] for line, end in zip(wanted, ends, strict=True)]
    rests = [line[end:] for line, end in zip(wanted, ends, strict=True)]
    try:
        return keys, [_plain_number(rest) for rest in rests]
    except ValueError:
        return keys, [_number(line, rest) for line, rest in zip(wanted, rests, strict=True)]


def _end_of_key(line: str) -> int:
    """Where name and labels end: neither a number nor a timestamp holds a brace, but an exemplar does."""
    end = line.rfind("}") + 1
    if end and _EXEMPLAR not in line:
        return end
    found = _SAMPLE.match(line)
    return found.end(1) if found else len(line)


def _plain_number(rest: str) -> float:
    if "_" in rest:  # Python's digits may be grouped, the format's may not
        raise ValueError(rest)
    return float(rest)


def _number(line: str, rest: str) -> float:
    """A number that may be followed by a timestamp, and by an exemplar."""
    words = rest.partition(_EXEMPLAR)[0].split()
    try:
        value, _ = _plain_number(words[0]), _plain_number(words[-1])
    except (ValueError, IndexError):
        raise SourceUnreadable(
            f"the answer is not Prometheus text: a line without a number ({shown(text_of(line))}); is this a metrics agent?"
        ) from None
    return value


_NAME: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(.*)\})?", re.DOTALL)
_ONE: Final = r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*+)"[ \t]*'
_LABEL: Final = re.compile(_ONE, re.DOTALL)
_LABELS: Final = re.compile(rf",?(?:{_ONE}(?:,[ \t]*|\Z))*+[ \t]*", re.DOTALL)
_ESCAPE: Final = re.compile(r'\\([\\n"])')


def parse_series(text: str) -> tuple[str, dict[str, str]]:
    """
    Return the name and the labels, these in their order and unescaped.

    >>> parse_series('up{job="a b",}')
    ('up', {'job': 'a b'})

    Raises ``ValueError`` when the text is not what the format allows. Names in quotes,
    which Prometheus 3 knows, are sent only on request.
    """
    found = _NAME.fullmatch(text)
    if found is None:
        raise ValueError("no name of a metric")
    # first the whole, which takes time in proportion to its length whatever it holds
    inner = found[2] or ""
    well_formed = _LABELS.fullmatch(inner) is not None
    pairs: list[tuple[str, str]] = _LABEL.findall(inner) if well_formed else []
    labels = dict(pairs)
    if not well_formed or len(labels) < len(pairs):
        raise ValueError("its labels are malformed")
    if "\\" in inner:
        labels = {
            label: _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], value) for label, value in pairs
        }
    return found[1], labels
