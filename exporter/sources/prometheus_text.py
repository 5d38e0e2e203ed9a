"""Reads a node through an agent that answers Prometheus text: jmx_exporter, Strimzi's metrics-reporter, or the like."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import Final

from ..coverage import Coverage, Unplaced
from ..errors import SourceUnreadable
from ..mapping import BeanColumn, BeanLayout, BeanTable
from ..threads import ANSWERS, answer_thread
from ..untrusted import shown
from .answers import OTHER_BROKERS, OWN_PAGE, foreign, refuse_other_formats
from .budget import COST_OF_LINE, COST_OF_TEXT, DECODING
from .dialects import JMX_RULES, MANGLED_ADVICE, MANGLED_NAME, TextDialect, detected, has_line, own_labels
from .fetch import HttpFetch
from .lines import PageLines, Replanned, factor_of
from .peer import HttpTarget
from .shortening import LongLines
from .source import CoverageTracker, LayoutTracker, NodeId
from .spellings import TYPES_IN_NAMES, prefix_of, quota_name
from .text_format import SampleKey, numbers_in, page_of, text_of

UNDETECTED: Final = "prometheus"
"""The dialect of an agent that has not shown any yet."""
_MOST_LABELS: Final = 20
"""Most labels of a series that is shown as an example."""
_HINT: Final = "the usual path of a Prometheus agent is /metrics"
_NO_DIALECT: Final = (
    "no metric has a name that a known dialect uses for quotas: check the agent's rules, "
    "or use those that `quotascope rules jmx-exporter` writes"
)
_SURVEYED_AGAIN_AFTER: Final = 16
"""
Reads between two looks at all names of a page that keeps its number of lines; new names of known dialects are seen at
once.
"""


class _Detections:
    """The dialects of the forms of one page, each detected once: that can take a search of all of it."""

    def __init__(self) -> None:
        self._known: list[tuple[str, TextDialect | None]] = []

    def of(self, page: str) -> TextDialect | None:
        """Return the dialect of a page; None if it shows none."""
        for known_page, dialect in self._known:
            if known_page is page:
                return dialect
        dialect = detected(page)
        self._known.append((page, dialect))
        return dialect


class PrometheusTextSource:
    """
    One broker or controller behind jmx_exporter, Strimzi's metrics-reporter, or the like.

    Args:
        name: The label ``source``.
        target: Address and login of the agent.
        forced: The dialect of its answers, or None to find out from each.

    """

    def __init__(self, name: str, target: HttpTarget, forced: TextDialect | None = None) -> None:
        self.name, self.node_id = name, target.node_id
        self._fetch = HttpFetch(target, _HINT)
        self._most_bytes = target.max_bytes
        self._reader = TextReader(forced)
        self._decoding = answer_thread()
        self._node_id = NodeId(target.node_id)

    @property
    def dialect(self) -> str:
        """The label ``dialect``: what the last answer was in, ``prometheus`` until one shows it."""
        return self._reader.dialect

    async def read(self) -> BeanTable:
        """Return the quota beans as they are now. Raises ``SourceError``."""
        self._decoding.check()
        lines = LongLines(self._most_bytes)
        async with self._fetch.asked(shortening=lines) as answer:
            whole = answer.endswith(b"\n")
            cost = COST_OF_TEXT * len(answer) + COST_OF_LINE * answer.count(b"\n")
            async with DECODING.turn(cost):
                page = await self._decoding.run(lambda: self._reader.read(answer, lines.lost()), ANSWERS)
        if not whole:
            raise SourceUnreadable(
                "the answer ends in the middle of a line, so there should be more of it: does the agent, or a "
                "proxy before it, cut it?"
            )
        try:
            node_id = self._node_id.of(page.layout)
        except SourceUnreadable as error:
            raise SourceUnreadable(page.mistake or str(error)) from None
        return BeanTable(
            node_id=node_id,
            layout=page.layout,
            values=page.values,
            remark=page.remark,
            hint=page.hint,
            coverage=page.coverage,
        )

    async def close(self) -> None:
        """Release connections."""
        self._reader.close()
        await self._fetch.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """The content of one page."""

    layout: BeanLayout
    values: array[float]
    coverage: Coverage
    remark: str | None = None
    """The fault of the page although it could be read."""
    hint: str | None = None
    """Advice for a page without a series of any entity."""
    mistake: str | None = None
    """Sentence about the dialect of a page without a series of any entity, where another dialect is forced."""


@dataclass(frozen=True, slots=True)
class _Survey:
    """The results of a look at all names of a page."""

    prefix: str = ""
    """The text that the names of quota metrics have before ``kafka``."""
    names: tuple[str, ...] = ()
    """Names of quota metrics that begin with none of the dialect's prefixes, as beginnings of lines."""
    spaced: bool = False
    """True if blanks stand between names and labels."""
    has_quotas: bool = False
    """True if there are names of quota metrics."""
    has_others: bool = False
    """True if some of these names are not as the dialect spells them."""


class TextReader:
    """
    Detects the dialect of each page, and keeps what it learned of its series.

    Args:
        forced: The dialect of all pages, or None to detect it.

    """

    def __init__(self, forced: TextDialect | None = None) -> None:
        self._forced = forced
        self._dialect = forced
        self._survey = _Survey()
        self._reads = 0
        self._line_count = 0
        """Number of lines of the last page: further lines may have names that no page had before."""
        self._lines: PageLines | None = None
        self._tracker = self._new_tracker()
        self._keys: list[SampleKey] = []
        self._layout = BeanLayout(())
        self._covered = CoverageTracker()
        self._coverage = Coverage()
        self._unplaced: Unplaced | None = None
        self._labels: tuple[str, ...] = ()
        self._in_seconds = ""
        self._factors: list[float] | None = None

    @property
    def dialect(self) -> str:
        """The dialect of the last page that showed one."""
        return self._dialect.name if self._dialect else UNDETECTED

    def close(self) -> None:
        """Give back the room of its numbers."""
        self._tracker.close()

    def read(self, answer: bytes | bytearray, lost: Unplaced | None = None) -> TextPage:
        """
        Return the columns and numbers of a page, of which some lines may be ``lost``; a ``bytearray`` is used up.

        Raises ``SourceUnreadable``.
        """
        try:
            return self._read(answer, lost)
        except SourceUnreadable:
            # a page that cannot be read says nothing about the names of the next one
            self._survey, self._reads = _Survey(), 0
            raise

    def _read(self, answer: bytes | bytearray, lost: Unplaced | None) -> TextPage:
        """Return the columns and numbers of a page, as ``read`` does, which forgets the survey after an error."""
        refuse_other_formats(answer)
        page = page_of(answer)
        long: dict[SampleKey, str] = {}
        keys, numbers = self._samples(page, long)
        if not keys and (program := foreign(page)):
            raise SourceUnreadable(program)
        if not keys and not has_line(page, ("kafka_",)):
            raise SourceUnreadable(
                "the answer holds no metric of Kafka: is this the metrics agent of a broker or controller, "
                "and do its rules name Kafka's metrics kafka_…?"
            )
        layout, values = self._placed(keys, numbers, long)
        if layout is not self._layout:
            self._layout, self._factors = layout, self._factors_of(layout)
        if self._factors is not None:
            values = array("d", map(mul, values, self._factors))
        covered = self._covered.of(layout, self._unplaced, self._labels, self._in_seconds)
        coverage = self._coverage = covered.without(lost)
        remark = self._remark(page)
        if coverage.has_entities:
            return TextPage(layout=layout, values=values, coverage=coverage, remark=remark)
        mistake = None
        shown_dialect = detected(page) if self._forced else None
        if self._forced and shown_dialect and shown_dialect is not self._forced:
            mistake = f"the configuration says dialect {self._forced.name}, but the answer is in {shown_dialect.name}"
        hint = mistake or (self._dialect.advice if self._dialect else _NO_DIALECT)
        return TextPage(layout=layout, values=values, coverage=coverage, remark=remark, hint=hint, mistake=mistake)

    def _samples(self, as_is: str, long: dict[SampleKey, str]) -> tuple[list[SampleKey], list[float]]:
        """
        Return the series of interest and their numbers, by the dialect that the page shows.

        All names of the page are surveyed if another dialect, new names or a lost prefix are likely. ``as_is`` is the
        page as the agent wrote it.
        """
        page, detections = self._plain(as_is), _Detections()
        dialect = self._forced or detections.of(page)
        self._reads += 1
        line_count = as_is.count("\n")
        is_due = line_count != self._line_count or self._reads % _SURVEYED_AGAIN_AFTER == 1
        self._line_count = line_count
        is_new = dialect is None or dialect is not self._dialect
        has_lost_prefix = not (is_new or is_due) and self._survey.prefix and detections.of(as_is)
        if is_new or is_due or has_lost_prefix:
            had_others = self._survey.has_others
            page, dialect = self._survey_of(as_is, detections)
            # coverage is complete only without names that the dialect does not spell
            if self._dialect is not None and self._dialect.complete and had_others is not self._survey.has_others:
                self._forget()
        if dialect is None and self._survey.names:
            dialect = JMX_RULES
        if dialect is not None and dialect is not self._dialect:
            self._dialect = dialect
            self._forget()
        prefixes = self._dialect.prefixes if self._dialect else ()
        return numbers_in(page, (*prefixes, *self._survey.names), long)

    def _survey_of(self, as_is: str, detections: _Detections) -> tuple[str, TextDialect | None]:
        """Survey the names of a page from scratch; return it under usual names, with the dialect that it then shows."""
        previous, page = self._survey, as_is
        dialect = self._forced or detections.of(as_is)
        survey = _surveyed(page, dialect)
        # the prefix of the pages before, while no client is measured
        prefix = survey.prefix if survey.has_quotas else previous.prefix
        self._survey = _Survey(prefix, (), survey.spaced)
        if prefix or survey.spaced:
            # the same page under usual names shows its dialect
            page = self._plain(as_is)
            dialect = self._forced or detections.of(page)
            survey = _surveyed(page, dialect)
        names = () if self._forced else survey.names
        self._survey = replace(self._survey, names=names, has_others=survey.has_others and not self._forced)
        return page, dialect

    def _plain(self, page: str) -> str:
        """Return the page without the prefix of its names and without blanks between names and labels."""
        if self._survey.spaced:
            page = _GAP.sub(r"\1{", page)
        if prefix := self._survey.prefix:
            for beginning in ("\n", "\n# TYPE ", "\n# HELP "):
                page = page.replace(f"{beginning}{prefix}", beginning)
        return page

    def _placed(
        self, keys: list[SampleKey], numbers: list[float], long: Mapping[SampleKey, str]
    ) -> tuple[BeanLayout, array[float]]:
        """
        Return the columns and numbers of a page.

        The page is read again from scratch where it contradicts only earlier pages.
        """
        if keys == self._keys:
            return self._tracker.place(keys, numbers)
        knows_earlier_pages = self._lines is not None
        if self._lines is not None:
            self._lines.long = long
        else:
            self._start(keys, long)
        while True:
            try:
                placed = self._tracker.place(keys, numbers)
                break
            except Replanned:
                if knows_earlier_pages:  # perhaps by a label that earlier pages lacked, or had with another value
                    knows_earlier_pages = False
                    self._start(keys, long)
                self._tracker = self._new_tracker()
            except SourceUnreadable:
                if not knows_earlier_pages:
                    self._forget()
                    raise
                knows_earlier_pages = False
                self._start(keys, long)
        self._keys = keys
        if self._lines is not None:
            self._lines.keep_only(keys)
            self._unplaced = self._lines.unplaced_lines()
            self._labels = self._lines.labels_of_page()
            self._in_seconds = self._lines.in_seconds(keys)
            self._lines.long = {}
        return placed

    def _start(self, keys: list[SampleKey], long: Mapping[SampleKey, str]) -> None:
        """Forget what was learned of lines, and begin to read a page with these keys. Raises ``SourceUnreadable``."""
        self._forget()
        if self._dialect is not None:
            self._lines = PageLines(self._dialect)
            self._lines.long = long
            self._lines.begin(keys)

    def _forget(self) -> None:
        """Forget what was learned of the lines and columns of earlier pages."""
        self._lines, self._keys, self._unplaced, self._labels, self._in_seconds = None, [], None, (), ""
        self._tracker = self._new_tracker()
        dialect = self._dialect
        self._covered = CoverageTracker(
            complete=bool(dialect and dialect.complete and not self._survey.has_others),
            alike=bool(dialect and dialect.alike),
        )

    def _factors_of(self, layout: BeanLayout) -> list[float] | None:
        """Return the factors from the numbers of a page to Kafka's units; None where all are in Kafka's units."""
        lines = self._lines
        if lines is None or not lines.factors:
            return None
        factors = [lines.factors.get(column, 1.0) for column in layout.columns]
        lines.factors = {
            column: factor for column, factor in zip(layout.columns, factors, strict=True) if factor != 1.0
        }
        return factors

    def _remark(self, page: str) -> str | None:
        """
        Return a remark about lines that cannot be used although entities could be read; None if there is no such line.

        Raises ``SourceUnreadable`` with the remark if no entity could be read.
        """
        unplaced, mangled = self._coverage.unplaced, MANGLED_NAME.search(page)
        if mangled is not None:
            text = (
                f"this agent's rules put user and client-id into names of metrics ({shown(mangled[1])}), "
                f"from which they cannot be recovered: {MANGLED_ADVICE}"
            )
        elif unplaced is not None and not self._coverage.has_entities:
            text = (
                f"{unplaced.text}: `quotascope rules check` shows for the agent's rules which of them make such lines"
            )
        else:
            return None
        if not self._coverage.has_entities:
            raise SourceUnreadable(text)
        return text

    def _new_tracker(self) -> LayoutTracker[SampleKey]:
        """Return a tracker without keys, which reads lines by the present ``_lines``."""
        return LayoutTracker(lambda key: self._columns_of((key,))[0], text_of, factor_of, self._columns_of)

    def _columns_of(self, keys: Sequence[SampleKey]) -> Sequence[Sequence[BeanColumn | None]]:
        """Return the column of each line in a list of its own; None for all lines while no dialect is known."""
        return self._lines.columns_of(keys) if self._lines else [[None]] * len(keys)


_GAP: Final = re.compile(r"(?m)^([ \t]*[a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]+\{")
_NAMES: Final = re.compile(
    rf"\n[ \t]*+(?!kafka_(?!server_|broker|client|quota|{TYPES_IN_NAMES}|metrics?[ \t{{])"
    r"|kafka_server_brokertopic|jvm_)"
    r"([a-zA-Z_:][a-zA-Z0-9_:]*+)(?:([ \t]++\{)|(?:\{[^\n]*+(?:\n\1\{[^\n]*+)*+)?)"
)
"""
A name that can be that of a quota metric, and blanks behind it; most lines of a page are none, and skipped at once, and
so are those that follow with the same name.
"""


def _surveyed(page: str, dialect: TextDialect | None) -> _Survey:
    """
    Look at all names of a page, and return those of quota metrics that the dialect does not spell.

    Raises ``SourceUnreadable`` for the page of an exporter of ours, and of several brokers.
    """
    names_and_gaps = {*_NAMES.findall(page)}  # a gap is the blanks between a name and its labels
    all_names = {name for name, _ in names_and_gaps if not name.startswith(OTHER_BROKERS)}
    if any(name.startswith("quotascope_") for name in all_names):
        raise SourceUnreadable(OWN_PAGE)
    parsed = {name: quota for name in all_names if (quota := quota_name(name))}
    certain_names = {name for name, quota in parsed.items() if quota.attribute or (quota.type and not quota.ending)}
    prefixes = {prefix_of(name) for name in certain_names}
    if len(prefixes) > 1:
        _refuse_prefixes_of_brokers(certain_names)
    prefix = next(iter(prefixes)) if len(prefixes) == 1 else ""
    certain_names |= {name for name in all_names if own_labels(name)}
    names = certain_names | parsed.keys()  # for other names, labels decide
    usual_prefixes = dialect.prefixes if dialect else ()
    # a node's start, which some agents show under two names: one of them is enough
    start_prefixes = tuple(usual for usual in usual_prefixes if "app_info_" in usual)
    has_start = bool(start_prefixes) and any(f"{name}{{".startswith(start_prefixes) for name in names)
    unusual = [
        name for name in names if not f"{name}{{".startswith(usual_prefixes) and not (has_start and "app_info_" in name)
    ]
    beginnings = sorted(f"{name}{end}" for name in unusual for end in ("{", " ", "\t"))
    spaced = any(gap for _, gap in names_and_gaps)
    return _Survey(
        prefix=prefix,
        names=tuple(beginnings),
        spaced=spaced,
        has_quotas=bool(prefixes),
        has_others=not certain_names.isdisjoint(unusual),
    )


def _refuse_prefixes_of_brokers(names: Iterable[str]) -> None:
    """
    Raise ``SourceUnreadable`` where names differ in their prefixes alone.

    Each prefix is another broker's, or another agent's.
    """
    first_name: dict[str, str] = {}  # by the name without its prefix
    for name in sorted(names):
        prefix = prefix_of(name)
        earlier_name = first_name.setdefault(name.removeprefix(prefix).lower(), name) if prefix else name
        if prefix_of(earlier_name).lower() != prefix.lower():
            raise SourceUnreadable(
                f"the page has series of several brokers: the names {shown(earlier_name)} and {shown(name)} differ in "
                "their prefix alone. Give quotascope the agent of each broker instead of a page that joins them "
                "(/federate, or one exporter for several brokers)"
            )
