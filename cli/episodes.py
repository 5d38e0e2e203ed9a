"""`quotascope episodes`: shows the times, the rules and the lengths of the throttles of a client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from . import options, outputs, past
from .options import TimeZone, check_extra, grouped, span_of, zone_of
from .past import PrometheusOptions
from .settings import AdminOptions, RunningExporter

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.exporter.sources.peer import HttpTarget
    from quotascope.pages.report import Report
    from quotascope.quotas import QuotaSet

EXAMPLES = """
Examples:

quotascope episodes usage --user alice --begin 2026-11-22T18:00 --end 2026-11-23T08:00 --time-zone Europe/Berlin

quotascope episodes usage --user alice --client-id app1 --quotas quotas.yaml --json

quotascope episodes --user alice --exporter http://quotascope:9749

quotascope episodes --prometheus http://prometheus:9090 --days 7 --by-user --bootstrap-servers broker-1:9092

quotascope episodes usage --html episodes.html --csv episodes.csv
"""
_MOST: Final = 200
"""Number of rows of the table."""
_MOST_GAPS: Final = 10
_COLUMNS: Final = (
    *("user", "client_id", "broker", "quota_type", "began_at", "ended_at", "ongoing", "throttled_requests"),
    *("throttle_seconds", "longest_throttle_seconds", "rules"),
)


@grouped
def episodes(
    folder: Annotated[str | None, options.FOLDER] = None,
    *,
    user: Annotated[str | None, options.USER] = None,
    client_id: options.ClientId = None,
    by_user: options.ByUser = False,
    begin: options.Begin = None,
    end: options.End = None,
    time_zone: TimeZone = "UTC",
    quotas: options.QuotasFrom = None,
    running: RunningExporter,
    prometheus: PrometheusOptions,
    kafka: AdminOptions,
    results: outputs.Results,
) -> None:
    """
    Show when a client was throttled, by which rule, and for how long: from a history, an exporter, or a Prometheus.

    Request logs and samples name no rules: rules are found from the quotas of that time, in a file or the cluster.
    An exporter knows episodes since it started, a Prometheus as far back as it keeps samples.
    """
    import asyncio

    zone, exporter = zone_of(time_zone), running.target()
    span = span_of(begin, end, zone)
    prometheus.check(folder=folder, exporter=running.exporter)
    if exporter is not None and quotas is not None:
        raise typer.BadParameter("has no effect: an exporter names the rules itself", param_hint="--quotas, --exporter")
    outputs.check(*results.files)
    if exporter is not None:
        answer = asyncio.run(_of_exporter(exporter, user, client_id, *span))
    else:
        check_extra()
        from quotascope.quotas import read_quotas

        from .cluster import configured_quotas

        rules = None
        if quotas is not None:
            rules = read_quotas(quotas)
        elif (settings := kafka.configuration()).kafka is not None:
            rules = configured_quotas(settings)
        if folder is None:
            answer = _of_prometheus(prometheus, kafka.configuration(), (user, client_id), span, rules)
        else:
            from quotascope.pipeline.runs.episodes import find_episodes

            with outputs.bar("looking for episodes"):
                answer = find_episodes(folder, (user, client_id), span, rules)
    if by_user:
        answer["episodes"] = summed_by_user(answer["episodes"])
    answer = {"throttled": _was_throttled(answer), **answer}
    outputs.write(
        results,
        report=partial(report, answer, folder or running.exporter or answer["prometheus"], zone, sums=folder is None),
        document=lambda: answer,
        csv=partial(as_csv, answer),
    )


def _was_throttled(answer: dict[str, Any]) -> bool | None:
    """Return whether there was a throttle; None if a part is unknown and there is no episode."""
    if answer["episodes"]:
        return True
    losses = answer.get("losses") or {"brokers": ()}
    has_losses = any(broker["missing_share"] != 0 for broker in losses["brokers"])  # None is an unknown share
    is_unknown = answer["not_covered"] or answer.get("measured_together") or has_losses
    return None if is_unknown else False


def _of_prometheus(
    prometheus: PrometheusOptions,
    settings: Config,
    client: tuple[str | None, str | None],
    span: tuple[float | None, float | None],
    rules: QuotaSet | None,
) -> dict[str, Any]:
    """Return the episodes in the samples of a Prometheus server, in the form of a history's."""
    from quotascope.pipeline.prometheus.episodes import find_episodes

    with past.open_past(prometheus, settings, span) as opened, outputs.bar("looking for throttles") as progress:
        cluster_past, limits = opened.limits() if rules is None else (opened.past, {})
        return find_episodes(
            cluster_past,
            client,
            gaps=opened.gaps(),
            configured=rules,
            present_limits=limits,
            progress=progress,
        )


def summed_by_user(episodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """
    Return the episodes of users, each joined from episodes of the user's client-ids.

    Episodes are joined if they are not further apart than the pause between two episodes. A value that is unknown for
    one of them is unknown for the sum; ``client_id`` is null.
    """
    from quotascope.metrics.kafka.windows import EPISODE_PAUSE_SECONDS

    latest: dict[tuple[str, str, str], dict[str, Any]] = {}
    sums: list[dict[str, Any]] = []
    for episode in sorted(episodes, key=lambda row: row["began_at"]):
        key = episode["user"], episode["broker"], episode["quota_type"]
        total = latest.get(key)
        if total is None or episode["began_at"] > total["ended_at"] + EPISODE_PAUSE_SECONDS:
            total = latest[key] = {**episode, "client_id": None}
            sums.append(total)
            continue
        total["ended_at"] = max(total["ended_at"], episode["ended_at"])
        total["ongoing"] |= episode["ongoing"]
        for name in ("throttled_requests", "throttle_seconds"):
            counts = total[name], episode[name]
            total[name] = None if None in counts else sum(counts)
        longest = total["longest_throttle_seconds"], episode["longest_throttle_seconds"]
        total["longest_throttle_seconds"] = None if None in longest else max(longest)
        rules = total["rules"], episode["rules"]
        total["rules"] = None if None in rules else list(dict.fromkeys([*rules[0], *rules[1]]))
    return sums


async def _of_exporter(
    target: HttpTarget, user: str | None, client_id: str | None, begin: float | None, end: float | None
) -> dict[str, Any]:
    """
    Return the episodes of an exporter in the form of a history's (`find_episodes`).

    ``measured_together`` counts episodes that may be of this user, but are measured for a client-id of all users, or
    for a user with all client-ids.
    """
    from quotascope.exporter.api.client import read_episodes
    from quotascope.exporter.page.query import EpisodeQuery

    # With one name, all episodes are read: episodes of all users, or of all client-ids, may include this client.
    has_one_name = (user is None) != (client_id is None)
    query = EpisodeQuery(since=max(0.0, begin or 0.0))
    answer = await read_episodes(target, query if has_one_name else query.with_values(user=user, client_id=client_id))
    since, taken_at = answer["since"], answer["taken_at"]
    begin = since if begin is None else begin
    end = taken_at if end is None else end
    # nothing is known before the exporter's first episode could be seen, nor after its last collection
    gaps = [(begin, since), *answer["gaps"], (taken_at, end)]
    gaps_in_span = [(max(begin, gap_begin), min(end, gap_end)) for gap_begin, gap_end in gaps]
    rows = sorted(
        (episode for episode in answer["episodes"] if episode["began_at"] <= end),
        key=lambda episode: episode["began_at"],
    )
    together = 0
    if has_one_name:
        together = _measured_together(rows, user, client_id)
        key, name = ("user", user) if client_id is None else ("client_id", client_id)
        rows = [episode for episode in rows if episode[key] == name]
    return {
        "begin": begin,
        "end": end,
        "measured_together": together,
        "not_covered": [
            {"broker": None, "begin": gap_begin, "end": gap_end}
            for gap_begin, gap_end in gaps_in_span
            if gap_begin < gap_end
        ],
        "episodes": [
            {
                **{name: episode[name] for name in ("user", "client_id", "broker", "quota_type", "began_at")},
                "ended_at": episode["seen_at"],
                "ongoing": episode["ongoing"],
                "throttled_requests": None,
                "throttle_seconds": None,
                "longest_throttle_seconds": episode["throttle_time_seconds"],
                "rules": _rules(episode),
            }
            for episode in rows
        ],
    }  # fmt: skip


def _measured_together(episodes: Sequence[dict[str, Any]], user: str | None, client_id: str | None) -> int:
    """Return how many episodes of sums over clients may include those of a user or of a client-id."""
    if user:
        return sum(not episode["user"] for episode in episodes)
    if client_id:  # sums over the client-ids of a user
        return sum(not episode["client_id"] and bool(episode["user"]) for episode in episodes)
    return 0  # an empty name is that of sums only


def _rules(entity: dict[str, Any]) -> list[str] | None:
    """Return the rule that throttled an entity of an exporter; empty if none did, None if it is unknown."""
    if entity["cause"] == "controller_mutation":
        decider = entity.get("decided_by") or {}
        rule = decider.get("rule")
        return [f"controller mutations: {rule['name']}" if rule else "a controller mutation quota"]
    if entity["limit_state"] == "unknown" or entity["cause"] == "unknown":
        return None
    return [entity["rule"]["name"]] if entity["rule"] and entity["limit_state"] != "unlimited" else []


def report(answer: dict[str, Any], source: str | None, zone: tzinfo, *, sums: bool) -> Report:
    """
    Report the episodes, or that there was no throttle, and the times of which that is unknown.

    Args:
        answer: the answer as a document.
        source: the folder of the history, or the address of the exporter.
        zone: time zone of all times.
        sums: whether episodes are of sums over clients, as brokers report them, without requests and totals. An empty
            name then stands for no client.

    """
    from quotascope.metrics.kafka.entities import spelled
    from quotascope.pages.report import Report, Rows
    from quotascope.pages.words import moment, period, seconds, shown

    count_heads = () if sums else ("#requests", "#total")
    rows = []
    for episode in answer["episodes"][-_MOST:]:
        count, total = episode["throttled_requests"], episode["throttle_seconds"]
        longest = episode["longest_throttle_seconds"]
        rules = episode["rules"]
        # the quota at the beginning of a rule has a column of its own
        rule_names = [shown(rule.removeprefix(f"{episode['quota_type']} "), 100) for rule in rules or ()]
        names = [episode[name] for name in ("user", "client_id")]
        if sums:
            names = [name or None for name in names]
        count_cells = ["?" if count is None else f"{count:,}", "?" if total is None else seconds(total)]
        rows.append([
            moment(1_000 * episode["began_at"], zone)[: len("2026-11-21 16:55:06")],
            seconds(episode["ended_at"] - episode["began_at"]) + (", ongoing" if episode["ongoing"] else ""),
            spelled(*names),
            " or ".join(rule_names) or ("unknown rule" if rules is None else "no rule"),
            shown(episode["broker"]),
            episode["quota_type"].replace("_", " "),
            *([] if sums else count_cells),
            "?" if longest is None else seconds(longest),
        ])  # fmt: skip
    count = len(answer["episodes"])
    latest = [f"the latest {_MOST} of {count:,}: --json has all"] if count > _MOST else []
    table = Rows(
        heads=("#from", "=length", "entity", "by rule", "node", "=quota", *count_heads, "#longest"),
        rows=rows,
        legend="; ".join((f"times are in {zone}", *latest)),
        below="by rule",
        name=2,
        terminal_rows=_MOST,
        page_rows=_MOST,
    )
    how = "seen" if sums else "logged"
    return Report(
        title="Throttle episodes",
        where=period(source or "", 1_000 * answer["begin"], 1_000 * answer["end"], zone),
        headline=list(_sentences(answer, zone, how)),
        caveats=(answer.get("losses") or {"notes": ()})["notes"],
        blocks=(table,),
    )


def as_csv(answer: dict[str, Any]) -> str:
    """Write a row for each episode; several rules are joined by ` or `, unknown ones are empty."""
    from quotascope.pages.report import csv_of

    return csv_of(
        _COLUMNS,
        (
            {**episode, "rules": None if episode["rules"] is None else " or ".join(episode["rules"])}
            for episode in answer["episodes"]
        ),
    )


def _sentences(answer: dict[str, Any], zone: tzinfo, how: str) -> Iterator[str]:
    """Yield sentences about times without a throttle, and about times of which nothing is known."""
    from quotascope.pages.words import moment, shown

    def span(times: dict[str, Any]) -> str:
        begin, end = (moment(1_000 * times[name], zone) for name in ("begin", "end"))
        return f"from {begin} to {end}"

    gaps = answer["not_covered"]
    if answer["throttled"] is False:
        yield f"no throttle was {how} {span(answer)}"
    elif answer["throttled"] is None:
        yield f"whether there was a throttle {span(answer)} is unknown in part:"
    for gap in gaps[:_MOST_GAPS]:
        node = "" if gap["broker"] is None else f" of node {shown(gap['broker'])}"
        yield f"nothing was {how}{node} {span(gap)}"
    if len(gaps) > _MOST_GAPS:
        yield f"nor in {len(gaps) - _MOST_GAPS:,} other times: --json has all"
    if together := answer.get("measured_together"):
        yield (
            f"{together:,} more may be of this client, which brokers measure together with others: give --user and "
            "--client-id"
        )
