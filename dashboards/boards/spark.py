"""Dashboard about Spark jobs: their waits, beside the figures that brokers measure for the same clients."""

from __future__ import annotations

from functools import partial
from typing import Any

from quotascope.alerts import Dashboard
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from .. import columns, steps
from ..columns import BoardColumn
from ..expressions import row_key, throttled, utilization
from ..job_clients import CLIENT, SEEN_AS, beside, keyed, of_jobs, seen_as, waits
from ..links import runbooks, to_entity_in_chosen_clusters
from ..panels import Line, Row, below_each_other, dashboard, graph, side_by_side, table
from ..promql import above, both, but_not, call, compare, either, grouped, rate, select
from ..recorded import growth, waiting
from ..scope import RATE_INTERVAL, Scope
from ..variables import common, one_of, values

APP, QUERY = one_of("app"), one_of("query")
LIMITED = 0.1
"""Least throttle time, in seconds per second, of a query that a quota limits."""
CATCHES_UP = {"0": "cannot catch up", "1": "yes"}
_LIMITS = """\
Streaming queries that read Kafka and were throttled for 10 % or more of the last ten minutes. Backlog: offsets behind \
the newest. maxOffsetsPerTrigger/s: the largest value that the limit allows for each second of the trigger interval. \
Catch-up: time to read the backlog at this limit, measured over two minutes; \
a query cannot catch up if producers add more than it reads."""
_ABOUT = """\
One row for each Kafka client of a job, the longest throttle time first. Waiting: seconds of throttle time per \
second, over ten minutes; 1 means that one task does nothing but wait. Longest: of the last minute or two. \
Delay and Used are what the exporter reads from brokers for the same client: by user, client-id or both, \
depending on the rule (Seen as); under the quota of its side, or under request time. Not seen: no rule applies to it, \
the job does not report its user, its cluster is not chosen above, or no \
exporter reads its brokers. The links lead to the brokers' view."""


def board(scope: Scope) -> dict[str, Any]:
    """Return the dashboard about jobs."""
    return dashboard(
        scope,
        Dashboard.SPARK,
        title="Kafka quotas / Spark jobs",
        description=(
            "How long Spark jobs wait for Kafka, what that costs them, and what the brokers measure for the same "
            "user and client-id."
        ),
        variables=(
            *common(scope),
            values((catalog.SPARK_LISTENER_EVENTS,), "app", "Job"),
            values((catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS,), "query", "Query", APP),
        ),
        rows=(
            clients_of_jobs(scope),
            over_time(scope),
            failures(scope),
            queries(scope),
            limits(scope),
            listener(scope),
        ),
    )


def clients_of_jobs(scope: Scope) -> Row:
    """Return the row of waiting clients with both sides' figures, which leads from a client-id to its jobs."""
    longest = select(catalog.SPARK_THROTTLE_MAX_SECONDS, APP, QUERY)
    jobs = table(
        "Jobs that wait for Kafka",
        _ABOUT,
        map(
            keyed,
            (
                waits(scope, APP, QUERY),
                scope.by("max", longest, *CLIENT),
                beside(scope, partial(throttled, scope), APP, QUERY),
                beside(scope, partial(utilization, scope), APP, QUERY),
                seen_as(scope, APP, QUERY),
            ),
        ),
        BoardColumn(title="Job", source="app", least=110),
        BoardColumn(title="Query", source="query", least=110),
        BoardColumn(title="Side", source="side", width=80),
        *columns.user_and_client(to_entity_in_chosen_clusters()),
        columns.waiting("A"),
        columns.number("Longest", "B", "s", 90),
        BoardColumn(title="Seen as", source="E", width=140, texts=SEEN_AS),
        columns.delay("C"),
        columns.used("D"),
        sort="Waiting",
        links=runbooks(scope.site, "KafkaQuotaSparkJobThrottled"),
    )
    return Row(title="Jobs that wait", panels=side_by_side(jobs))


def over_time(scope: Scope) -> Row:
    """Return the row of waits of jobs, beside the brokers' figures of the same clients."""
    legend = "{{quota_type}} {{entity}}"
    by_job = graph(
        scope,
        "Waiting, by job",
        "Throttle time of the clients of each job per second, over ten minutes: 1 means that one task does nothing "
        "but wait.",
        "short",
        Line(scope.by("sum", waiting(APP, QUERY), "app", "query", "side"), "{{app}} {{query}} {{side}}"),
        steps=steps.JOB_WAITS,
        links=runbooks(scope.site, "KafkaQuotaSparkJobThrottled"),
        axis="tasks that wait",
    )
    delay = graph(
        scope,
        "The brokers' view: delay",
        "Average delay that brokers report for the users and client-ids of these jobs. Depending on the rule, "
        "brokers measure users, client-ids or pairs.",
        "s",
        Line(of_jobs(partial(throttled, scope), APP, QUERY), legend),
        steps=steps.DELAY,
        links=runbooks(scope.site, "KafkaQuotaThrottleBeyondClientTimeout"),
    )
    share = graph(
        scope,
        "The brokers' view: share of the limit",
        "How much of their limit the users and client-ids of these jobs use on the busiest broker.",
        "percentunit",
        Line(of_jobs(partial(utilization, scope), APP, QUERY), legend),
        steps=steps.USED,
        links=runbooks(scope.site, "KafkaQuotaNearLimit"),
    )
    return Row(title="The same clients, as brokers see them", panels=below_each_other(by_job, delay, share))


def failures(scope: Scope) -> Row:
    """Return the row of attempts that failed and were repeated."""

    def by_cause(family: Family) -> tuple[Line, Line]:
        """Return the lines of causes that occurred, and the line of 0 of jobs without any, which are known too."""
        labels = ("app", "cause")
        occurred = above(select(family, *_chosen(family)), 0)
        none = but_not(f"0 * {_grown(scope, family, 'app')}", occurred, ("app",))
        return Line(both(_grown(scope, family, *labels), occurred, labels), "{{app}} {{cause}}"), Line(
            none, "{{app}} none"
        )

    retries = graph(
        scope,
        "Repeated task attempts, by cause",
        f"{catalog.SPARK_TASK_RETRIES.help} kafka_quota is a refusal (error 89), kafka_timeout_throttled a timeout "
        "while the client was throttled. Causes that never occurred are left out; a job without any has a line of 0.",
        "short",
        *by_cause(catalog.SPARK_TASK_RETRIES),
        stacked=True,
        links=runbooks(scope.site, "KafkaQuotaSparkRetries"),
        axis="attempts",
    )
    failed = graph(
        scope,
        "Failed task attempts, by cause",
        f"{catalog.SPARK_TASK_FAILURES.help} Causes that never occurred are left out; a job without any has a line of "
        "0.",
        "short",
        *by_cause(catalog.SPARK_TASK_FAILURES),
        stacked=True,
        axis="attempts",
    )
    other_retries = graph(
        scope,
        "Repeated stages, lost executors",
        "Stages started again, Admin calls repeated after a refusal, and executors lost.",
        "short",
        Line(_grown(scope, catalog.SPARK_STAGE_RETRIES, "app"), "{{app}} stages"),
        Line(_grown(scope, catalog.SPARK_ADMIN_QUOTA_RETRIES, "app"), "{{app}} Admin calls"),
        Line(_grown(scope, catalog.SPARK_EXECUTORS_LOST, "app"), "{{app}} executors"),
        axis="stages, calls, executors",
    )
    return Row(title="Attempts", panels=side_by_side(retries, failed, other_retries))


def queries(scope: Scope) -> Row:
    """Return the row of the progress of streaming queries."""

    def worst_query(family: Family, what: str = "") -> Line:
        worst = _worst(scope, family, "app", "query")
        return Line(worst, f"{{{{app}}}} {{{{query}}}}{what}")

    duration_of = catalog.SPARK_QUERY_BATCH_DURATION_SECONDS
    age = graph(
        scope,
        "Time since the last progress",
        catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS.help,
        "s",
        worst_query(catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS),
        worst_query(catalog.SPARK_QUERY_TRIGGER_SECONDS, " trigger"),
        steps=steps.QUERY_STALLED,
        links=runbooks(scope.site, "KafkaQuotaSparkQueryStalled"),
    )
    offsets = graph(
        scope,
        "Offsets behind",
        "How far the worst partition, and all on average, are behind the newest offset.",
        "short",
        worst_query(catalog.SPARK_QUERY_MAX_OFFSETS_BEHIND, " worst"),
        worst_query(catalog.SPARK_QUERY_AVG_OFFSETS_BEHIND, " average"),
        axis="offsets",
    )
    duration = graph(
        scope,
        "Duration of the last batch, by phase",
        duration_of.help,
        "s",
        Line(_worst(scope, duration_of, "app", "query", "phase"), "{{app}} {{query}} {{phase}}"),
    )
    restarts = graph(
        scope,
        "Restarts",
        catalog.SPARK_QUERY_RESTARTS.help,
        "short",
        Line(_grown(scope, catalog.SPARK_QUERY_RESTARTS, "app", "query"), "{{app}} {{query}}"),
        axis="restarts",
    )
    panels = side_by_side(age, offsets, duration, restarts)
    return Row(title="Streaming queries", panels=panels)


def limits(scope: Scope) -> Row:
    """Return the row of throttled streaming queries and the rates that their limits allow."""

    def at_limit(family: Family) -> str:
        """Return figures of queries that are throttled for much of their time: no quota limits other queries."""
        worst = _worst(scope, family, "app", "query")
        # clients have no query if Spark's connector does not report it
        of_query, of_no_query = (
            above(scope.by("max", waiting(APP, matcher), *labels), LIMITED)
            for matcher, labels in ((QUERY, ("app", "query")), ('query=""', ("app",)))
        )
        return either(both(worst, of_query, scope.keys("app", "query")), both(worst, of_no_query, scope.keys("app")))

    catch_up = at_limit(catalog.SPARK_QUERY_CATCH_UP_SECONDS)
    throttled_queries = table(
        "Throttled streaming queries",
        _LIMITS,
        (
            row_key(expr, "app", "query")
            for expr in (
                at_limit(catalog.SPARK_QUERY_BACKLOG_OFFSETS),
                at_limit(catalog.SPARK_QUERY_READ_OFFSETS_PER_SECOND),
                compare(grouped(catch_up), "<", "Inf"),
                compare(grouped(catch_up), "< bool", "Inf"),
            )
        ),
        BoardColumn(title="Job", source="app", least=110),
        BoardColumn(title="Query", source="query", least=110),
        columns.number("Backlog", "A", "short"),
        columns.number("maxOffsetsPerTrigger/s", "B", "short", 200),
        columns.number("Catch-up", "C", "s"),
        BoardColumn(title="Catches up", source="D", width=140, texts=CATCHES_UP),
        sort="Backlog",
        links=runbooks(scope.site, "KafkaQuotaSparkQueryStalled"),
    )
    saved = graph(
        scope,
        "Saved without the quota, at most",
        "Share of the time of a job that its throttle times can be on the critical path: their sum, as if no two "
        "clients waited at the same time, and never more than all. "
        "`quotascope spark report` knows how the tasks ran.",
        "percentunit",
        Line(call("clamp_max", scope.by("sum", waiting(APP, QUERY), "app"), "1"), "{{app}}"),
    )
    return Row(title="Under the limit", panels=((16, throttled_queries), (8, saved)))


def listener(scope: Scope) -> Row:
    """Return the row of the listener: whether reports of jobs are complete."""
    events, lost = (
        scope.by("sum", rate(family, RATE_INTERVAL, *_chosen(family)), "app")
        for family in (
            catalog.SPARK_LISTENER_EVENTS,
            catalog.SPARK_LISTENER_LOST_EVENTS,
        )
    )
    handled = graph(
        scope,
        "Events of the listener",
        "Events handled, and those that could not be, per second.",
        "cps",
        Line(events, "{{app}} handled"),
        Line(lost, "{{app}} lost"),
        links=runbooks(scope.site, "KafkaQuotaSparkEventsLost"),
    )
    lag = graph(
        scope,
        "How far the listener is behind",
        catalog.SPARK_LISTENER_LAG_SECONDS.help,
        "s",
        Line(_worst(scope, catalog.SPARK_LISTENER_LAG_SECONDS, "app"), "{{app}}"),
    )
    holes = graph(
        scope,
        "What is missing",
        "Task attempts that did not report their waits (their executor or Python process ended), and failures of "
        "parts of the listener.",
        "short",
        Line(_grown(scope, catalog.SPARK_UNKNOWN_ATTEMPTS, "app"), "{{app}} attempts"),
        Line(_grown(scope, catalog.SPARK_LISTENER_PROBLEMS, "app", "part"), "{{app}} {{part}}"),
        axis="attempts, problems",
    )
    panels = side_by_side(handled, lag, holes)
    return Row(title="The listener", panels=panels, collapsed=True)


def _worst(scope: Scope, family: Family, *labels: str) -> str:
    """Return the highest series of the chosen jobs."""
    return scope.by("max", select(family, *_chosen(family)), *labels)


def _grown(scope: Scope, family: Family, *labels: str) -> str:
    """Return the growth of a counter of the chosen jobs."""
    return scope.by("sum", growth(family, RATE_INTERVAL, *_chosen(family)), *labels)


def _chosen(family: Family) -> tuple[str, ...]:
    """Return the matchers of the chosen jobs, and of queries if the family has them."""
    return (APP, QUERY) if "query" in family.labels else (APP,)
