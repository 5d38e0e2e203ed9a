"""The recording rules: series of entities, brokers, clusters and Spark jobs, and what is usual there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from . import recorded
from .links import Site
from .promql import (
    above,
    aggregate,
    average,
    both,
    but_not,
    call,
    compare,
    grouped,
    highest,
    literal,
    operation,
    quoted,
    rate,
    select,
    series,
)
from .recorded import TREND_NEEDS, TREND_WINDOW, waiting
from .rule import ENTITY_LABELS, QUOTA_LABELS, Record
from .thresholds import THROTTLED


def entities(site: Site) -> Iterator[Record]:
    """Throttle, utilization, headroom and amounts of every entity."""
    yield Record(
        name=recorded.ENTITY_THROTTLE,
        expr=aggregate("max", site.keys(*QUOTA_LABELS), _by_deciding_quota(site)),
        meaning="Throttle time above 0, highest of all brokers; `quota_type` is the cause.",
    )
    yield Record(
        name=recorded.ENTITY_UTILIZATION,
        expr=aggregate("max", site.keys(*QUOTA_LABELS), select(catalog.UTILIZATION)),
        meaning="Utilization on the busiest broker.",
    )
    yield Record(
        name=recorded.ENTITY_HEADROOM,
        expr=operation("1", "-", series(recorded.ENTITY_UTILIZATION)),
        meaning="1 - utilization on the busiest broker.",
    )
    yield _total(site, recorded.ENTITY_PRODUCE, catalog.PRODUCE_BYTES_PER_SECOND, "Bytes per second produced.")
    yield _total(site, recorded.ENTITY_FETCH, catalog.FETCH_BYTES_PER_SECOND, "Bytes per second fetched.")
    yield _total(site, recorded.ENTITY_REQUEST, catalog.REQUEST_THREADS, "Request time in threads.")
    labels = site.keys("user")
    produced = aggregate("sum", labels, series(recorded.ENTITY_PRODUCE))
    fetched = aggregate(
        "sum", labels, compare(series(recorded.ENTITY_FETCH), ">=", 0)
    )  # an unrecorded fetch makes a rate negative
    sides = operation(
        call("label_replace", produced, '"side"', '"produce"', '""', '""'),
        "or",
        call("label_replace", fetched, '"side"', '"fetch"', '""', '""'),
    )
    yield Record(
        name=recorded.USER_BYTES,
        expr=aggregate("sum", labels, sides),
        meaning="Bytes per second produced and fetched; empty `user`: entities without a user.",
    )
    yield Record(
        name=recorded.CLUSTER_BYTES,
        expr=aggregate("sum", site.keys(), series(recorded.USER_BYTES)),
        meaning="Bytes per second produced and fetched.",
    )


def owners(site: Site) -> Iterator[Record]:
    """The owner of each entity, for the filter of dashboards; alerts have it from a template."""
    named = [(owner.clients.matchers(), owner.team) for owner in site.owners]
    if site.has_owners:
        each = [*named, ((), site.default_owner)]
        entities = (_owned(site, *of_team) for of_team in each)
        # the first owner that matches counts
        first = f"\nor on ({', '.join(site.keys(*ENTITY_LABELS))})\n"
        yield Record(
            name=recorded.ENTITY_OWNER,
            expr=first.join(entities),
            meaning="Always 1: the `owner` of each entity, if owners are configured.",
        )


def _owned(site: Site, matchers: Sequence[str], team: str | None) -> str:
    # not every agent reports both
    throttle, utilization = (
        select(family, *matchers) for family in (catalog.THROTTLE_TIME_SECONDS, catalog.UTILIZATION)
    )
    either_of = operation(throttle, "or", utilization)
    each = aggregate("group", site.keys(*ENTITY_LABELS), either_of)
    if team is None:
        return each
    return call("label_replace", each, '"owner"', quoted(literal(team)), '""', '""')


_LASTING: Final = ((1020, "16m"), (540, "8m"), (300, "4m"), (180, "2m"), (120, "1m"))
"""
Throttle times in seconds, and for how long a longer one certainly lasts after its last sample: Kafka reports each for about a minute.

With these, at least half of any throttle of up to half an hour counts, and no time after it.
"""


def _lasting(throttle: Callable[..., str]) -> str:
    """The throttles that last although Kafka does not report them any more, each with its longest time; `throttle` selects within a `window`."""
    longest = ((call("max_over_time", throttle(window=window)), seconds) for seconds, window in _LASTING)
    return "\nor\n".join(above(each, seconds) for each, seconds in longest)


def objectives(site: Site) -> Iterator[Record]:
    """How fast the budgets of objectives are spent now, and within the shorter windows; evaluated each minute."""
    if site.objectives:
        labels = site.keys("instance", "broker", *ENTITY_LABELS)
        burning = []
        for objective in site.objectives:
            of_clients = partial(
                select, catalog.THROTTLE_TIME_SECONDS, *objective.clients.matchers(), f'user!="{catalog.OVERFLOW}"'
            )
            longest = aggregate("max", labels, of_clients())
            throttled = compare(longest, "> bool", objective.tolerated_seconds)
            lasting = aggregate("group", labels, above(grouped(_lasting(of_clients)), objective.tolerated_seconds))
            still = both(lasting, longest, labels)  # not of an entity that is gone
            now = f"{grouped(operation(grouped(still), 'or', throttled))} / {objective.budget:.15g}"
            name = quoted(literal(objective.name))
            burning.append(call("label_replace", now, '"slo"', name, '""', '""'))
        yield Record(
            name=recorded.INSTANCE_BURN,
            expr="\nor\n".join(burning),
            meaning="1 / budget while a broker throttles an entity with an objective, else 0.",
        )
        yield from (_burned(site, minutes) for minutes in (5, 30, 60))


def budgets(site: Site) -> Iterator[Record]:
    """The same within the longer windows, which change slowly."""
    if site.objectives:
        yield from (_burned(site, minutes) for minutes in (360, 4320))


def _burned(site: Site, minutes: int) -> Record:
    """
    How fast a budget was spent within a window, on the broker and by the exporter where that is most.

    Each exporter sees another phase of a broker, and each broker throttles at other times: put together at each moment, they would be throttled for longer
    than any of them. The sum, one sample a minute, is divided by all of the window: what was not measured is not counted as throttled.
    """
    # Prometheus 2 takes the samples at both ends of a window
    window = series(recorded.INSTANCE_BURN, window=f"{60 * minutes - 1}s")
    spent = f"{call('sum_over_time', window)} / {minutes}"
    return Record(
        name=recorded.BURNS[minutes],
        expr=aggregate("max", site.keys("slo", *ENTITY_LABELS), spent),
        meaning="The same, average of the time in the name.",
    )


def trends(site: Site) -> Iterator[Record]:
    """How full the limits have been and will be: looks back far, and changes slowly."""
    labels = site.keys(*catalog.UTILIZATION.labels)
    recent = average(catalog.UTILIZATION, labels, "30m")
    still_there = both(recent, select(catalog.UTILIZATION), labels)
    # the average of the first minutes would rise with every minute, which is no trend; a scrape that failed then is no beginning
    before = select(catalog.UTILIZATION, window="5m", offset="25m")
    there_before = call("present_over_time", before)
    history = series(recorded.ENTITY_UTILIZATION_RECENT, window=TREND_WINDOW)
    # an average of half an hour is that of a quarter ago
    in_three_hours = call("predict_linear", history, "3.25 * 3600")
    long_before = series(recorded.ENTITY_UTILIZATION_RECENT, window="10m", offset=TREND_NEEDS)
    known_for_long = call("present_over_time", long_before)
    yield Record(
        name=recorded.ENTITY_UTILIZATION_RECENT,
        expr=aggregate("max", site.keys(*QUOTA_LABELS), both(still_there, there_before, labels)),
        meaning="Average utilization of 30 minutes on the broker where it is highest.",
    )
    yield Record(
        name=recorded.ENTITY_UTILIZATION_PREDICTED,
        expr=both(in_three_hours, known_for_long, site.keys(*QUOTA_LABELS)),
        meaning="Utilization in three hours by the trend of the last six; needs four.",
    )


def _total(site: Site, name: str, family: Family, meaning: str) -> Record:
    once = aggregate("max", site.keys("broker", "user", "client_id"), select(family))
    return Record(name=name, expr=aggregate("sum", site.keys(*ENTITY_LABELS), once), meaning=meaning)


def _by_deciding_quota(site: Site) -> str:
    """
    The throttle times above 0, by broker and by the quota that causes them.

    Under KRaft a broker counts as request throttle what the controller's mutation quotas impose on
    requests that it forwards; the exporter separates them (``kafka_quota_throttle_cause_info``),
    and here they get the ``quota_type`` of their cause.
    """
    labels = site.keys("quota_type", "broker", "user", "client_id")
    forwarded = select(catalog.THROTTLE_CAUSE_INFO, 'quota_type="request"', 'cause="controller_mutation"')
    own = but_not(above(select(catalog.THROTTLE_TIME_SECONDS), 0), forwarded, labels)
    of_mutations = both(above(select(catalog.THROTTLE_TIME_SECONDS, 'quota_type="request"'), 0), forwarded, labels)
    renamed = call("label_replace", of_mutations, '"quota_type"', '"controller_mutation"', '""', '""')
    return operation(grouped(own), "or", renamed)


def brokers(site: Site) -> Iterator[Record]:
    """Request time, delay queues and throttle time of every broker."""
    yield Record(
        name=recorded.BROKER_EXEMPT,
        expr=aggregate("max", site.keys("broker"), select(catalog.EXEMPT_REQUEST_THREADS)),
        meaning="Request time that no quota counts, in threads.",
    )
    once = aggregate("max", site.keys("broker", "user", "client_id"), select(catalog.REQUEST_THREADS))
    yield Record(
        name=recorded.BROKER_REQUEST,
        expr=aggregate("sum", site.keys("broker"), once),
        meaning="Request time of all clients, in threads.",
    )
    yield Record(
        name=recorded.BROKER_CAPACITY,
        expr=aggregate("max", site.keys("broker"), select(catalog.REQUEST_CAPACITY_THREADS)),
        meaning="Threads that can serve requests.",
    )
    used = operation(series(recorded.BROKER_REQUEST), "+", series(recorded.BROKER_EXEMPT), site.keys("broker"))
    yield Record(
        name=recorded.BROKER_CAPACITY_USED,
        expr=operation(grouped(used), "/", grouped(above(series(recorded.BROKER_CAPACITY), 0)), site.keys("broker")),
        meaning="Used share of these threads.",
    )
    by_pool, of_all = (
        aggregate("min", site.keys("broker"), rate(family, "5m"))
        for family in (
            catalog.REQUEST_HANDLER_POOL_IDLE_SECONDS,
            catalog.REQUEST_HANDLER_IDLE_SECONDS,
        )
    )
    yield Record(
        name=recorded.BROKER_HANDLERS_IDLE,
        expr=operation(by_pool, "or", of_all),
        meaning="Share of time in which the request handlers of the busiest pool were idle.",
    )
    yield Record(
        name=recorded.BROKER_DELAY_QUEUE,
        expr=aggregate("max", site.keys("quota_type", "broker"), select(catalog.DELAY_QUEUE_SIZE)),
        meaning="Muted connections, by `quota_type`.",
    )
    once = aggregate("max", site.keys("broker", "request"), rate(catalog.REQUEST_THROTTLED_SECONDS, "5m"))
    yield Record(
        name=recorded.BROKER_THROTTLED_RATE,
        expr=aggregate("sum", site.keys("broker"), once),
        meaning="Throttle time per second: about the number of waiting connections.",
    )


_DAY = "1d"
_RECENT = "30m"
"""Left out of what is usual, so that a spike is not compared with itself."""


def clusters(site: Site) -> Iterator[Record]:
    """Throttle time, throttled entities, delay queues and refusals of every cluster."""
    yield Record(
        name=recorded.CLUSTER_THROTTLED_RATE,
        expr=aggregate("sum", site.keys(), series(recorded.BROKER_THROTTLED_RATE)),
        meaning="Throttle time per second.",
    )
    throttle = partial(series, recorded.ENTITY_THROTTLE)
    throttled = above(grouped(f"{_lasting(throttle)}\nor\n{throttle()}"), site.value(THROTTLED))
    # an entity that is throttled by two quotas counts once
    entities = aggregate("group", site.keys(*ENTITY_LABELS), throttled)
    counted = aggregate("count", site.keys(), entities)
    none = operation("0", "*", aggregate("group", site.keys(), series(catalog.BUILD_INFO.name)))
    yield Record(
        name=recorded.CLUSTER_THROTTLED_ENTITIES,
        expr=operation(highest(site.keys(), clients=counted, callback=recorded.of_callbacks(site)), "or", none),
        meaning=f"Entities throttled by {site.value(THROTTLED):g} s or more; with a custom callback the highest count of a broker and quota type.",
    )
    yield Record(
        name=recorded.CLUSTER_DELAY_QUEUE,
        expr=aggregate("sum", site.keys("quota_type"), series(recorded.BROKER_DELAY_QUEUE)),
        meaning="Muted connections, by `quota_type`.",
    )
    labels = site.keys("request")
    once = aggregate("max", site.keys("broker", "request"), rate(catalog.THROTTLING_ERRORS, "5m"))
    yield Record(
        name=recorded.CLUSTER_REFUSALS,
        expr=aggregate("sum", labels, once),
        meaning="Refusals per second, by `request`; KRaft counts each twice.",
    )


def baselines(site: Site) -> Iterator[Record]:
    """What is usual: these need days of data and change slowly."""
    yield _baseline(
        site,
        recorded.CLUSTER_THROTTLED_BASELINE,
        _usual(site, recorded.CLUSTER_THROTTLED_RATE),
        "KafkaQuotaThrottleSpike",
        "Highest of the last day's average and the peaks around this time yesterday and a week ago.",
    )
    yield _baseline(
        site,
        recorded.CLUSTER_THROTTLED_ENTITIES_BASELINE,
        _usual(site, recorded.CLUSTER_THROTTLED_ENTITIES),
        "KafkaQuotaManyClientsThrottled",
        "The same for throttled entities.",
    )
    # Kafka reports no number of refusals before the first one: an average of those that there are would take a first hour of refusals for usual
    refused = _over("sum_over_time", recorded.CLUSTER_REFUSALS, _DAY, _RECENT)
    measured = _over("count_over_time", recorded.CLUSTER_THROTTLED_ENTITIES, _DAY, _RECENT)
    yield _baseline(
        site,
        recorded.CLUSTER_REFUSALS_BASELINE,
        operation(refused, f"/ on ({', '.join(site.keys())}) group_left ()", grouped(above(measured, 0))),
        "KafkaQuotaRefusalsRising",
        "Average of the day before.",
        labels=site.keys("request"),
    )
    # one that is no target any more was scaled down, most likely
    seen = call("last_over_time", select(catalog.BUILD_INFO, window="1w"))
    yield _baseline(
        site,
        recorded.EXPORTERS_BASELINE,
        call("quantile_over_time", "0.5", f"({recorded.exporters(site)})[1d:5m]"),
        "KafkaQuotaExporterMissing",
        "Exporters that could be scraped, median of the last day.",
        cause=both(seen, "up == 0", ("job", "instance")),
    )


def _usual(site: Site, name: str) -> str:
    return highest(
        site.keys(),
        day=_over("avg_over_time", name, _DAY, _RECENT),
        yesterday=_over("max_over_time", name, "2h", "23h"),
        week=_over("max_over_time", name, "2h", "167h"),
    )


def _baseline(  # noqa: PLR0913  # it has as many properties
    site: Site, name: str, usual: str, alert: str, meaning: str, *, cause: str = "", labels: Sequence[str] = ()
) -> Record:
    """
    A record of what is usual, or while an alert with equal labels fires (and the cluster has a cause for it, if that is given) what was usual before.

    An incident of half a day would become usual, and end its own page. What lasts for a week is usual, so that no page stays for ever.
    """
    firing = ("ALERTS", f'alertname="{alert}"', 'alertstate="firing"')
    on = labels or site.keys()
    new = but_not(series(*firing), series(*firing, offset="1w"), on)
    if cause:
        new = both(new, cause, on)
    before = call("last_over_time", series(name, window="1h"))
    return Record(name=name, expr=operation(grouped(both(before, new, on)), "or", usual), meaning=meaning)


def _over(function: str, name: str, window: str, offset: str) -> str:
    return call(function, series(name, window=window, offset=offset))


def jobs(site: Site) -> Iterator[Record]:
    """Throttle time of every job."""
    once = aggregate("max", site.keys(*catalog.SPARK_THROTTLED_SECONDS.labels), waiting())
    yield Record(
        name=recorded.APP_THROTTLED_RATE,
        expr=aggregate("sum", site.keys("app", "query", "side"), once),
        meaning="Throttle time of a Spark job per second, by `query` and `side`.",
    )
