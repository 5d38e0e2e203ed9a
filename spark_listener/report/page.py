"""The report as a page that needs nothing else: no script, no font and no picture from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from xml.etree.ElementTree import Element

from quotascope.pages.frame import framed
from quotascope.pages.markup import Child, element
from quotascope.pages.table import table
from quotascope.pages.words import moment, seconds, shown

from ..job import QuerySnapshot
from .account import Account, FailedAttempt, StageAccount
from .colours import CAUSES, FAILED_STAGE, STAGE, THROTTLED
from .drawing import drawing
from .style import STYLE
from .tables import headline
from .timeline import timeline
from .totals import (
    causes,
    duration,
    last_batch,
    longest_waits,
    missing,
    no_waits,
    stages_hit,
    waits,
)

_MOST = 50
_table = partial(table, most=_MOST)


def page(account: Account) -> str:
    """The text of a file; names of strangers are escaped."""
    title = f"{shown(account.app) or 'A Spark job'}: what it waited for"
    return framed(title, STYLE, _sections(account))


def _sections(account: Account) -> Iterator[Element]:
    yield from _head(account)
    yield from _timeline(account)
    yield from _waits(account)
    yield from _causes(account)
    yield from _stages(account)
    yield from _queries(account)
    yield from _longest(account)
    yield element("ul", *(element("li", each) for each in missing(account)))


def _head(account: Account) -> Iterator[Element]:
    took = seconds(max(0.0, account.ended - account.began))
    state = "" if account.finished else ", not ended"
    yield element("h1", shown(account.app) or "A Spark job")
    where = f"{shown(account.app_id)}, from {moment(1_000 * account.began)} for {took}{state}"
    yield element("p", where, class_="where")
    yield element("p", headline(account), class_="headline")


def _timeline(account: Account) -> Iterator[Element]:
    drawn = timeline(account)
    if not drawn.lanes:
        return
    yield element("h2", "Timeline")
    yield element("p", *_legend(account), class_="legend")
    yield drawing(drawn)
    if drawn.not_drawn:
        yield element(
            "p", f"{drawn.not_drawn} more lanes with less in them", class_="where"
        )


def _legend(account: Account) -> Iterator[Child]:
    keys = [("stage or batch", STAGE), ("failed stage", FAILED_STAGE)]
    keys += [
        (cause.value, CAUSES[cause])
        for cause, failures, _ in causes(account)
        if failures
    ]
    if any(attempt.throttled_ms for attempt in account.attempts):
        keys.append(("told to wait, as noted", THROTTLED))
    for name, colour in keys:
        swatch = element("rect", width=12, height=12, fill=colour)
        svg = element("svg", swatch, class_="key", viewBox="0 0 12 12")
        yield element("span", svg, f" {name}")


def _waits(account: Account) -> Iterator[Element]:
    rows = waits(account)
    yield element("h2", "Throttled time by query and client")
    if not rows:
        yield element("p", no_waits(account))
        return
    most = max(1, *(totals.throttled_ms for _, totals in rows))
    heads = ("query", "user", "client id", "side", "", "#throttled", "#responses", "#longest", "#quota retries")  # fmt: skip
    yield _table(
        heads,
        [
            (
                *(shown(name) for name in (query, *totals.client)),
                _share(totals.throttled_ms / most),
                seconds(totals.throttled_ms / 1_000),
                str(totals.responses),
                seconds(totals.longest_ms / 1_000),
                str(totals.quota_retries),
            )
            for query, totals in rows
        ],
    )


def _share(part: float) -> Element:
    bar = element("rect", width=100 * part, height=10, fill=THROTTLED)
    return element(
        "svg", bar, class_="share", viewBox="0 0 100 10", preserveAspectRatio="none"
    )


def _causes(account: Account) -> Iterator[Element]:
    rows = causes(account)
    yield element("h2", "Failures and retries by cause")
    if rows:
        yield _table(
            ("cause", "#failed attempts", "#retries"),
            [(cause.value, str(failed), str(again)) for cause, failed, again in rows],
        )
    else:
        yield element("p", "No attempt of a task failed.")


def _stages(account: Account) -> Iterator[Element]:
    rows = stages_hit(account, len(account.stages))
    if rows:
        yield element("h2", "Stages hit")
        heads = ("stage", "name", "query", "causes", "#throttled", "#failed attempts")
        yield _table(heads, [_stage(stage) for stage in rows])


def _stage(stage: StageAccount) -> Sequence[Child]:
    told = ", ".join(f"{count} {cause}" for cause, count in stage.failures.items())
    return (
        f"{stage.stage}.{stage.attempt}",
        shown(stage.name),
        shown(stage.query),
        told or "the stage itself",
        duration(stage.throttled_ms),
        str(stage.failed_attempts),
    )


def _queries(account: Account) -> Iterator[Element]:
    if account.snapshot.queries:
        yield element("h2", "Streaming queries")
        heads = (
            "query",
            "#restarts",
            "#last batch",
            "#offsets behind, worst",
            "#average",
        )
        yield _table(heads, [_query(each) for each in account.snapshot.queries])


def _query(query: QuerySnapshot) -> Sequence[Child]:
    behind = (query.max_offsets_behind, query.avg_offsets_behind)
    return (
        shown(query.name),
        str(query.restarts),
        last_batch(query),
        *("unknown" if value is None else f"{value:,.0f}" for value in behind),
    )


def _longest(account: Account) -> Iterator[Element]:
    rows = longest_waits(account, _MOST)
    if rows:
        yield element("h2", "Longest waits of failed attempts")
        heads = ("stage", "#partition", "#attempt", "cause", "raised", "query", "#told to wait", "#longest", "#took")  # fmt: skip
        yield _table(heads, [_attempt(each) for each in rows])


def _attempt(attempt: FailedAttempt) -> Sequence[Child]:
    return (
        f"{attempt.stage}.{attempt.stage_attempt}",
        str(attempt.partition),
        str(attempt.number),
        attempt.cause.value,
        shown(attempt.raised[-1]) if attempt.raised else "",
        shown(attempt.query),
        duration(attempt.throttled_ms),
        duration(attempt.longest_ms),
        seconds(attempt.ended - attempt.began),
    )
