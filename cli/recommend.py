"""`quotascope recommend`: the lowest quotas that would hardly ever have throttled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from . import options, outputs, past
from .options import EngineName, KafkaVersion, TimeZone, check_extra, grouped, release_of, zone_of
from .past import PrometheusOptions
from .settings import AdminOptions

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.metrics.kafka.entities import QuotaType
    from quotascope.metrics.kafka.release import KafkaRelease
    from quotascope.metrics.kafka.windows import WindowConfig
    from quotascope.pipeline.recommend.policy import Policy, RuleShape
    from quotascope.quotas import QuotaSet

EXAMPLES = """
Examples:

quotascope recommend --prometheus http://prometheus:9090 --days 14 --bootstrap-servers broker-1:9092

quotascope recommend --prometheus https://mimir:8080/prometheus --selector '{cluster="prod-eu"}' \
--prometheus-header X-Scope-OrgID=kafka --csv limits.csv

quotascope recommend --samples samples

quotascope recommend usage

quotascope recommend usage --share 5 --headroom 50 --for user,client-id --bootstrap-servers broker-1:9092

quotascope recommend usage --protect p99=20ms --for user,client-id --io-threads 8 --html protect.html

quotascope recommend usage --quotas quotas.yaml --html recommend.html --commands set-quotas.sh

quotascope recommend usage --strimzi users.yaml --strimzi-cluster my-cluster --time-zone Europe/Berlin
"""
_limits_option = partial(typer.Option, rich_help_panel="Requirements for the limits")

For = Annotated[
    Literal["user", "client-id", "user,client-id"] | None,
    _limits_option(
        "--for",
        help="Entities to recommend limits for.",
        show_default="user; with --prometheus, the entities that brokers measure",
    ),
]
Share = Annotated[
    float,
    _limits_option(metavar="PERCENT", help="Largest share of its active time in which an entity may be throttled."),
]
Headroom = Annotated[
    float, _limits_option(metavar="PERCENT", help="Headroom to add to the lowest limit that keeps the share.")
]
Together = Annotated[
    bool,
    _limits_option(
        "--all-hours-together",
        help=(
            "Keep the share over the whole time. By default, each hour of the week must keep it, so that a nightly "
            "peak is not lost in a quiet week."
        ),
    ),
]
Floors = Annotated[
    list[str] | None,
    _limits_option(
        "--floor",
        metavar="KEY=LIMIT",
        help=(
            "Never recommend less (bytes/s 10000, percent 1, mutations/s 0.5), such as producer_byte_rate=100000; "
            "may be repeated."
        ),
    ),
]
Keys = Annotated[
    list[str] | None,
    _limits_option(
        "--key", metavar="KEY", help="Recommend quotas of this key only, such as producer_byte_rate; may be repeated."
    ),
]
WindowsText = Annotated[
    str,
    _limits_option(
        "--windows", metavar="NUMxSECONDS", help="The brokers' quota.window.num and quota.window.size.seconds."
    ),
]
ControllerWindows = Annotated[
    str,
    _limits_option(
        "--controller-windows",
        metavar="NUMxSECONDS",
        help="The controllers' controller.quota.window.num and controller.quota.window.size.seconds.",
    ),
]
ShortLog = Annotated[
    bool,
    _limits_option(
        "--short-log", help="Recommend limits from less than a day of log, too; hours that the log lacks may need more."
    ),
]
Protect = Annotated[
    str | None,
    _limits_option(
        metavar="PERCENTILE=TIME",
        help=(
            "Find request quotas that protect the other clients instead: the highest at which their queue times keep "
            "this target, such as p99=20ms."
        ),
    ),
]
CommandsFile = Annotated[
    Path | None,
    options.output_option(
        "--commands",
        metavar="FILE",
        help="A script of kafka-configs.sh commands that would set the limits; - prints it.",
    ),
]
Strimzi = Annotated[
    Path | None, options.output_option(metavar="FILE", help="KafkaUser manifests for Strimzi; - prints them.")
]


@grouped
def recommend(
    folder: Annotated[str | None, options.FOLDER] = None,
    *,
    for_: For = None,
    share: Share = 1.0,
    headroom: Headroom = 20.0,
    all_hours_together: Together = False,
    key: Keys = None,
    floor: Floors = None,
    time_zone: TimeZone = "UTC",
    windows: WindowsText = "11x1",
    controller_windows: ControllerWindows = "11x1",
    kafka_version: KafkaVersion = None,
    short_log: ShortLog = False,
    protect: Protect = None,
    io_threads: options.IoThreads = None,
    engine: EngineName = "auto",
    quotas: options.QuotasFrom = None,
    prometheus: PrometheusOptions,
    kafka: AdminOptions,
    results: outputs.Results,
    commands: CommandsFile = None,
    strimzi: Strimzi = None,
    strimzi_cluster: Annotated[str, options.STRIMZI_CLUSTER] = "my-cluster",
) -> None:
    """
    Find the lowest limit per entity that would have throttled it at most a given share of the time.

    Reads the Prometheus that scrapes the brokers (--prometheus), or a usage history of request logs (FOLDER).
    Shows what would change and which clients would be throttled, and prints commands for kafka-configs.sh.
    Nothing is ever applied.
    """
    of_prometheus = prometheus.check(folder=folder)
    check_extra()
    from quotascope.metrics.kafka.entities import QuotaType
    from quotascope.pipeline.recommend.policy import FLOORS, ClusterWindows, Policy, QueueTarget, RuleShape
    from quotascope.pipeline.recommend.scripts import manifests, script_of
    from quotascope.pipeline.releases import followed
    from quotascope.pipeline.runs import recommend as question
    from quotascope.pipeline.runs.engine import EngineChoice
    from quotascope.quotas import kafka_configs
    from quotascope.quotas.candidates import windows_of_text

    outputs.check(*results.files, commands, strimzi)
    settings = kafka.configuration()
    policy = Policy(
        share=share / 100,
        headroom=headroom / 100,
        shape=RuleShape(for_ or "user"),
        by_hour=not all_hours_together,
        zone=zone_of(time_zone),
        kinds=[_kind(name) for name in key or ()] or tuple(QuotaType),
        short_log=short_log,
        floors={**FLOORS, **_floors(floor or ())},
        protect=None if protect is None else QueueTarget.of(protect),
        io_threads=io_threads,
    )
    release = release_of(kafka_version)
    present, cluster_release = _present_quotas(quotas, settings)
    cluster_windows = ClusterWindows(
        client=windows_of_text(windows),
        controller=windows_of_text(controller_windows),
        followed=followed(release, cluster=cluster_release),
    )
    if of_prometheus:
        if protect is not None or io_threads is not None:
            raise typer.BadParameter("needs a request log, FOLDER", param_hint="--protect, --io-threads")
        shape = None if for_ is None else RuleShape(for_)
        _from_prometheus(
            prometheus,
            settings,
            policy,
            shape,
            cluster_windows.client,
            present,
            (results, commands, strimzi),
            strimzi_cluster,
        )
        return
    with outputs.bar("searching") as progress:
        advice = question.advise(
            folder or "",
            policy,
            configured=present,
            windows=cluster_windows,
            engine=EngineChoice(engine),
            progress=progress,
        )
    kafka_commands = kafka_configs(advice.commanded, bootstrap_servers=_servers(settings))
    kafka_commands = replace(kafka_commands, left_out=(*kafka_commands.left_out, *advice.refusals))
    if commands is not None:
        outputs.put(commands, script_of(kafka_commands, question.caveats(advice)))
    if strimzi is not None:
        outputs.put(strimzi, manifests(advice, strimzi_cluster).text)
    plotted_usages = question.usages_of(advice) if results.html is not None else None
    outputs.write(
        results,
        commands,
        strimzi,
        report=partial(question.report, advice, kafka_commands, plotted_usages),
        document=partial(question.document, advice, kafka_commands),
        csv=partial(question.as_csv, advice),
    )


def _from_prometheus(  # noqa: PLR0917 - the parts of a command
    prometheus: PrometheusOptions,
    settings: Config,
    policy: Policy,
    shape: RuleShape | None,
    windows: WindowConfig,
    present: QuotaSet | None,
    files: tuple[outputs.Results, Path | None, Path | None],
    strimzi_cluster: str,
) -> None:
    """Recommend limits from the samples of a Prometheus server."""
    from quotascope.pipeline.prometheus import recommend as question
    from quotascope.pipeline.prometheus.advice import advise
    from quotascope.pipeline.recommend.scripts import manifests, script_of
    from quotascope.quotas import kafka_configs

    results, commands, strimzi = files
    with past.open_past(prometheus, settings) as opened:
        cluster_past, limits = opened.limits() if present is None else (opened.past, {})
        with outputs.bar("asking for rates") as of_rates, outputs.bar("asking for throttle times") as of_throttles:
            advice = advise(
                cluster_past,
                policy,
                shape=shape,
                windows=windows,
                configured=present,
                present_limits=limits,
                progress=(of_rates, of_throttles),
            )
    kafka_commands = kafka_configs(advice.commanded, bootstrap_servers=_servers(settings))
    kafka_commands = replace(kafka_commands, left_out=(*kafka_commands.left_out, *advice.refusals))
    if commands is not None:
        outputs.put(commands, script_of(kafka_commands, list(question.caveats(advice))))
    if strimzi is not None:
        outputs.put(strimzi, manifests(advice, strimzi_cluster).text)
    outputs.write(
        results,
        commands,
        strimzi,
        report=partial(question.report, advice, kafka_commands),
        document=partial(question.document, advice, kafka_commands),
        csv=partial(question.as_csv, advice),
    )


def _servers(settings: Config) -> str:
    """Return the bootstrap servers for commands, or an example of one if none is configured."""
    return ",".join(settings.kafka.bootstrap_servers if settings.kafka else ["localhost:9092"])


def _present_quotas(configured: Path | None, settings: Config) -> tuple[QuotaSet | None, KafkaRelease | None]:
    """Return the quotas of the file, or else those of the cluster and its release; None for what is not read."""
    from quotascope.quotas import QuotaSet, read_quotas

    from .cluster import admin

    if configured is not None:
        return read_quotas(configured), None
    if settings.kafka is None:
        return None, None
    with admin(settings) as quota_admin:
        return QuotaSet.of(quota_admin.describe_quotas()), quota_admin.describe_release()


def _floors(texts: Iterable[str]) -> dict[QuotaType, float]:
    """Return the least limits from texts ``KEY=LIMIT``. Raises ``typer.BadParameter``."""
    floors: dict[QuotaType, float] = {}
    for kind, limit in map(_floor, texts):
        if kind in floors:
            raise typer.BadParameter(f"{kind.quota_key} is there twice: give one of them", param_hint="--floor")
        floors[kind] = limit
    return floors


def _floor(text: str) -> tuple[QuotaType, float]:
    """Return the quota type and the limit of ``KEY=LIMIT``. Raises ``typer.BadParameter``."""
    key, _, value = text.partition("=")
    kind = _kind(key)
    try:
        return kind, float(value)
    except ValueError:
        raise typer.BadParameter(f"--floor takes KEY=LIMIT, not {text[:60]!r}") from None


def _kind(key: str) -> QuotaType:
    """Return the quota type of a key. Raises ``typer.BadParameter``, with the key that may be meant."""
    from quotascope.metrics.kafka.entities import QuotaType

    kind = QuotaType.of_quota_key(key)
    if kind is None:
        keys = [kind.quota_key for kind in QuotaType]
        close = get_close_matches(key[:60], keys, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise typer.BadParameter(f"{key[:60]!r} is none of {', '.join(keys)}{meant}")
    return kind
