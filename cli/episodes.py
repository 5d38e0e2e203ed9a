"""`quotascope episodes`: when a client was throttled, by which rule, for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from . import options, outputs
from .options import TimeZone, check_extra, grouped, span_of, zone_of
from .settings import AdminOptions, RunningExporter

if TYPE_CHECKING:
    from quotascope.exporter.sources.fetch import HttpTarget

    from .fitted import Fitted

EXAMPLES = """
Examples:

quotascope episodes usage --user alice --begin 2026-11-22T18:00 --end 2026-11-23T08:00 --time-zone Europe/Berlin

quotascope episodes usage --user alice --client-id app1 --quotas quotas.yaml --json

quotascope episodes --user alice --exporter http://quotascope:9749
"""
_MOST: Final = 200
"""Rows of the table."""
_MOST_GAPS: Final = 10


@grouped
def episodes(
    folder: Annotated[str | None, options.FOLDER] = None,
    *,
    user: Annotated[str | None, options.USER] = None,
    client_id: options.ClientId = None,
    begin: options.Begin = None,
    end: options.End = None,
    time_zone: TimeZone = "UTC",
    quotas: options.QuotasFrom = None,
    running: RunningExporter,
    kafka: AdminOptions,
    json: options.Json = False,
) -> None:
    """
    Show when a client was throttled, by which rule, and for how long: from a usage history, or from a running exporter.

    The request log names no rules: they are found by the quotas of that time, from a file or the cluster. An exporter knows episodes since it started.
    """
    zone, exporter = zone_of(time_zone), running.target()
    span = span_of(begin, end, zone)
    if (folder is None) == (exporter is None):
        raise typer.BadParameter("give one of them", param_hint="FOLDER, --exporter")
    if exporter is not None:
        found = asyncio.run(_of_exporter(exporter, user, client_id, *span))
    else:
        check_extra()
        from quotascope.pipeline.runs.episodes import find_episodes
        from quotascope.quotas import read_quotas

        from .cluster import configured

        known = None
        if quotas is not None:
            known = read_quotas(quotas)
        elif (settings := kafka.configuration()).kafka is not None:
            known = configured(settings)
        with outputs.bar("looking for episodes"):
            found = find_episodes(folder or "", (user, client_id), span, known)
    # unknown is not false
    missed = None if found["not_covered"] or found.get("measured_together") else False
    found = {"throttled": True if found["episodes"] else missed, **found}
    if json:
        outputs.put_json(found)
        return
    from rich.console import Console

    if found["episodes"]:
        Console().print(_table(found["episodes"], zone, sums=exporter is not None))
    for line in _sentences(found, zone, "seen" if exporter else "logged"):
        typer.echo(line)


async def _of_exporter(
    target: HttpTarget, user: str | None, client_id: str | None, begin: float | None, end: float | None
) -> dict[str, Any]:
    """
    The episodes of an exporter in the form of those of a history (`find_episodes`).

    ``measured_together`` counts those that may be of this user, but are of a client-id of all users, or the other way round.
    """
    from quotascope.exporter.api.client import read_episodes
    from quotascope.exporter.page.query import EpisodeQuery

    # With one name, the episodes of all are read: those of all users or client-ids together may include this client.
    named = (user is None) != (client_id is None)
    query = EpisodeQuery(since=max(0.0, begin or 0.0))
    answer = await read_episodes(target, query if named else query.with_values(user=user, client_id=client_id))
    since, now = answer["since"], answer["taken_at"]
    begin, end = since if begin is None else begin, now if end is None else end
    gaps = [(begin, since), *answer["gaps"], (now, end)]
    inside = [(max(begin, first), min(end, last)) for first, last in gaps]
    rows = sorted((each for each in answer["episodes"] if each["began_at"] <= end), key=lambda each: each["began_at"])
    together = 0
    if named:
        name, mine, other = (user, "user", "client_id") if client_id is None else (client_id, "client_id", "user")
        if name:  # an empty name is of such sums alone
            together = sum(not each[mine] and bool(each[other] or user) for each in rows)
        rows = [each for each in rows if each[mine] == name]
    return {
        "begin": begin,
        "end": end,
        "measured_together": together,
        "not_covered": [{"broker": None, "begin": first, "end": last} for first, last in inside if first < last],
        "episodes": [
            {
                **{name: each[name] for name in ("user", "client_id", "broker", "quota_type", "began_at")},
                "ended_at": each["seen_at"],
                "ongoing": each["ongoing"],
                "throttled_requests": None,
                "throttle_seconds": None,
                "longest_throttle_seconds": each["throttle_time_seconds"],
                "rules": _rules(each),
            }
            for each in rows
        ],
    }  # fmt: skip


def _rules(entity: dict[str, Any]) -> list[str] | None:
    if entity["cause"] == "controller_mutation":
        return ["a controller mutation quota"]
    if entity["limit_state"] == "unknown" or entity["cause"] == "unknown":
        return None
    return [entity["rule"]["name"]] if entity["rule"] and entity["limit_state"] != "unlimited" else []


def _table(rows: Sequence[dict[str, Any]], zone: tzinfo, *, sums: bool) -> Fitted:
    """A row for each episode, its rules below its entity; an empty name is of a client unless there are ``sums``, as of brokers, which report neither requests nor their total."""
    from rich.table import Table
    from rich.text import Text

    from quotascope.metrics import spelled
    from quotascope.pages.words import moment, seconds, shown

    from .fitted import Fitted

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("from", no_wrap=True)
    table.add_column("length", max_width=11)
    table.add_column("entity, by rule", overflow="fold", min_width=20)
    table.add_column("node", overflow="fold", max_width=10)
    table.add_column("quota", max_width=10)
    for header in ("requests", "total", "longest")[-1 if sums else 0 :]:
        table.add_column(header, justify="right", no_wrap=True)
    for each in rows[-_MOST:]:
        count, rules = each["throttled_requests"], each["rules"]
        by = "\n or ".join(shown(rule, 100) for rule in rules or ()) or ("unknown rule" if rules is None else "no rule")
        lengths = (each[name] for name in ("throttle_seconds", "longest_throttle_seconds"))
        user, client_id = (each[name] or None if sums else each[name] for name in ("user", "client_id"))
        cells = (
            moment(1_000 * each["began_at"], zone)[: len("2026-11-21 16:55:06")],
            seconds(each["ended_at"] - each["began_at"]) + ("\nongoing" if each["ongoing"] else ""),
            f"{spelled(user, client_id)}\n {by}",
            shown(each["broker"]),
            each["quota_type"].replace("_", " "),
            "?" if count is None else f"{count:,}",
            *("?" if length is None else seconds(length) for length in lengths),
        )
        table.add_row(*map(Text, (*cells[:5], *cells[-1 if sums else 5 :])))
    captions = [f"times are in {zone}"]
    if len(rows) > _MOST:
        captions.append(f"the latest {_MOST} of {len(rows):,}: --json has all")
    table.caption = "\n".join(captions)
    return Fitted(table, name=2)


def _sentences(found: dict[str, Any], zone: tzinfo, how: str) -> Iterator[str]:
    """That there was no throttle, as far as that is known, and what is not."""
    from quotascope.pages.words import moment, shown

    def span(times: dict[str, Any]) -> str:
        begin, end = (moment(1_000 * times[name], zone) for name in ("begin", "end"))
        return f"from {begin} to {end}"

    gaps = found["not_covered"]
    if found["throttled"] is False:
        yield f"no throttle was {how} {span(found)}"
    elif found["throttled"] is None:
        yield f"whether there was a throttle {span(found)} is unknown in part:"
    for each in gaps[:_MOST_GAPS]:
        of = "" if each["broker"] is None else f" of node {shown(each['broker'])}"
        yield f"nothing was {how}{of} {span(each)}"
    if len(gaps) > _MOST_GAPS:
        yield f"nor in {len(gaps) - _MOST_GAPS:,} other times: --json has all"
    if together := found.get("measured_together"):
        yield f"{together:,} more may be of this client, which brokers measure together with others: give --user and --client-id"
