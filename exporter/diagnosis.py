"""Why there is nothing, or less than expected, to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import OVERFLOW

from .snapshot import Snapshot
from .untrusted import shown


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Something does not work."""
    WARNING = "warning"
    """Something is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason, and what to do about it."""

    severity: Severity
    text: str
    advice: str = ""
    """Empty where the text says it all."""


def diagnose(snapshot: Snapshot) -> list[Finding]:
    """What keeps this snapshot from showing more; empty when all is well."""
    checks = (
        _configuration,
        _sources,
        _discoveries,
        _limits,
        _beside_the_quotas,
        _background,
    )
    return [*_found(checks, snapshot), *diagnose_quotas(snapshot)]


def diagnose_quotas(snapshot: Snapshot) -> list[Finding]:
    """What keeps it from showing more though everything could be read."""
    checks = (
        _nothing_measured,
        _crowded,
        _crowded_callbacks,
        _controller,
        _callbacks,
        _reported_utilization,
    )
    return _found(checks, snapshot)


def _found(
    checks: Iterable[Callable[[Snapshot], Iterable[Finding]]], snapshot: Snapshot
) -> list[Finding]:
    return [finding for check in checks for finding in check(snapshot)]


def _configuration(snapshot: Snapshot) -> Iterator[Finding]:
    reload = snapshot.reload
    if reload is not None and reload.error is not None:
        yield _error(
            f"The configuration cannot be used, the one before is in force: {reload.error}",
            "Mend it and send SIGHUP again; `quotascope config check` tells whether it is good.",
        )
    if reload is not None and reload.needs_restart:
        fields = ", ".join(reload.needs_restart)
        yield _warning(f"Changed, but in force only after a restart: {fields}.", "")


def _background(snapshot: Snapshot) -> Iterator[Finding]:
    for name, count in snapshot.restarts.items():
        if count:
            times = "once" if count == 1 else f"{count} times"
            yield _warning(
                f"The exporter's background task {name!r} failed and began again, {times} since it started: what it keeps up to date may be out of date.",
                "This is a defect of quotascope: the exporter's log has the traceback, which a report of it needs.",
            )


def _sources(snapshot: Snapshot) -> Iterator[Finding]:
    if not snapshot.sources and snapshot.discoveries:
        yield _error("No source was found.", "Check `discovery`.")
    elif not snapshot.sources:
        yield _error(
            "No source is configured.",
            "Name the agents of your brokers and controllers under `sources`, or let `discovery` find them.",
        )
    for source in snapshot.sources:
        if not source.up:
            yield _error(
                f"Source {source.name!r} ({source.dialect}) cannot be read: {source.error}"
            )
        if source.up and source.late and source.read_at is not None:
            yield _warning(
                f"Source {source.name!r} ({source.dialect}) has not answered yet: its numbers are {max(0.0, snapshot.taken_at - source.read_at):.0f} s old.",
                "Reduce what its agent writes, for example with the rules of `quotascope rules jmx-exporter`, or raise Prometheus's scrape_timeout.",
            )
        if source.up and source.remark is not None:
            yield _warning(
                f"Source {source.name!r} ({source.dialect}) gives less than it could.",
                source.remark,
            )


def _discoveries(snapshot: Snapshot) -> Iterator[Finding]:
    for discovery in snapshot.discoveries:
        if discovery.error is not None:
            yield _error(
                f"Discovery ({discovery.name}): {discovery.error}",
                f"What it found last is kept: {discovery.targets} nodes.",
            )


def _limits(snapshot: Snapshot) -> Iterator[Finding]:
    health = snapshot.limits_health
    if not health.configured:
        yield _warning(
            "No Admin API is configured: limits, rules and utilisation are unknown, and stale beans are shown as well.",
            "Set kafka.bootstrap_servers.",
        )
    elif health.denied:
        yield _error(
            f"The configured quotas may not be read: {health.error}{_kept(snapshot)}"
        )
    elif health.error is not None:
        yield _error(
            f"The Admin API cannot be reached: {health.error}{_kept(snapshot)}",
            "Check kafka.bootstrap_servers, security_protocol and the network.",
        )


def _kept(snapshot: Snapshot) -> str:
    read_at = snapshot.limits_health.read_at
    if snapshot.limits is None or read_at is None:
        return ""
    age = max(0.0, snapshot.taken_at - read_at)
    return f" (the limits shown are {age:.0f} s old)"


def _nothing_measured(snapshot: Snapshot) -> Iterator[Finding]:
    measured = snapshot.measured or snapshot.shown.tagged
    if measured or not any(source.up for source in snapshot.sources):
        return
    rules = None if callback_classes(snapshot) else _rule_count(snapshot)
    if rules == 0:
        yield _warning(
            "No client quota is configured: Kafka measures no client until there is one.",
            "Let it measure without limiting any client: `quotascope quotas set --measure-only` shows limits that no client reaches, and sets them with --apply.",
        )
    elif _stale_count(snapshot) > 0:
        yield _warning(
            f"All {_stale_count(snapshot)} quota beans are left over from earlier rules.",
            "They disappear an hour after their last request; current ones come with the next requests.",
        )
    else:
        known = "" if rules is None else f" ({rules} rules are configured)"
        yield _warning(
            f"No traffic yet: no broker has measured a client under a quota{known}.",
            "A broker measures a client from its first request on, where a quota of that type exists.",
        )
        yield from _hints(snapshot)


def _hints(snapshot: Snapshot) -> Iterator[Finding]:
    """Agents that may keep to themselves what they know of quotas."""
    for source in snapshot.sources:
        if source.up and source.hint is not None:
            yield _warning(
                f"Source {source.name!r} ({source.dialect}) told of no client under a quota.",
                f"If there is traffic, {source.hint}.",
            )


def _crowded(snapshot: Snapshot) -> Iterator[Finding]:
    folds = snapshot.folds
    if folds.crowded:
        counts = (f"{count} of {kind.label}" for kind, count in folds.crowded.items())
        yield _warning(
            f"More pairs of user and client id than are shown one by one: {', '.join(counts)}. "
            f"The {folds.max_entities} that matter most are shown, the others together as {OVERFLOW}.",
            "Raise cardinality.max_entities, or choose with include_users, exclude_client_ids and so on.",
        )
    if snapshot.measured and not snapshot.entities:
        yield _warning(
            f"All {len(snapshot.measured)} quota entities are left out: {folds.excluded} for their names, {folds.idle} as idle.",
            "Check the section cardinality of the configuration.",
        )


def _crowded_callbacks(snapshot: Snapshot) -> Iterator[Finding]:
    crowded = snapshot.callbacks.crowded
    if crowded:
        counts = (f"{count} of {kind.label}" for kind, count in crowded.items())
        yield _warning(
            f"Custom callbacks tell more entities apart than are shown one by one: {', '.join(counts)}. "
            f"The {snapshot.folds.max_entities} that matter most are shown, the others together as {OVERFLOW}.",
            "Raise cardinality.max_entities, or let the callback use fewer tags.",
        )


def _controller(snapshot: Snapshot) -> Iterator[Finding]:
    limits = snapshot.limits
    if limits is None or not limits.rules.get(QuotaType.CONTROLLER_MUTATION):
        return
    leader = limits.active_controller
    nodes = {node.broker for node in snapshot.nodes}
    if leader is not None and leader not in nodes and nodes:
        yield _warning(
            f"Node {leader}, the active controller, is not read: it alone knows the use of mutation quotas.",
            "Add all controllers to `sources`.",
        )


def _beside_the_quotas(snapshot: Snapshot) -> Iterator[Finding]:
    limits = snapshot.limits
    for what, why in limits.missing.items() if limits else ():
        yield _warning(
            f"Not known: {what}: {why}",
            "Limits and rules of clients are right all the same; capacity, bursts, the use of mutation quotas or the limits of connections, replication and remote storage may be missing.",
        )


def _callbacks(snapshot: Snapshot) -> Iterator[Finding]:
    for node_id, name in callback_classes(snapshot).items():
        yield _warning(
            f"Node {node_id} leaves quotas to {name or 'a custom callback'}: no limit, rule or utilisation can be told.",
            "Usage and throttling are shown all the same; where the callback has tags of its own, in families that begin with kafka_quota_callback_.",
        )
    left_out = snapshot.callbacks.left_out
    if left_out:
        yield _warning(
            f"Custom callbacks have too many tags; not shown: {', '.join(map(shown, left_out))}.",
            "Entities that differ in nothing else are shown as one.",
        )


def callback_classes(snapshot: Snapshot) -> dict[str, str | None]:
    """The class by node, None where only the tags of its beans tell of one."""
    found: dict[str, str | None] = {
        node.broker: None for node in snapshot.nodes if node.quota_callback
    }
    limits = snapshot.limits
    for node_id, settings in limits.nodes.items() if limits else ():
        if settings.quota_callback_class is not None:
            found[node_id] = settings.quota_callback_class
    return found


def _reported_utilization(snapshot: Snapshot) -> Iterator[Finding]:
    for node in snapshot.nodes:
        if node.utilization_disagreements:
            yield _warning(
                f"Node {node.broker} tells for {node.utilization_disagreements} entities another utilisation (quota-utilization) than follows from the configured limits.",
                "A limit was changed moments ago, or one side has missed a change: if this outlasts kafka.refresh_interval_seconds, compare `quotascope explain` with what the broker enforces.",
            )


def _rule_count(snapshot: Snapshot) -> int | None:
    if snapshot.limits is None:
        return None
    return sum(snapshot.limits.count(kind.quota_key) for kind in QuotaType)


def _stale_count(snapshot: Snapshot) -> int:
    return sum(sum(node.stale_entities.values()) for node in snapshot.nodes)


def _error(text: str, advice: str = "") -> Finding:
    return Finding(severity=Severity.ERROR, text=text, advice=advice)


def _warning(text: str, advice: str) -> Finding:
    return Finding(severity=Severity.WARNING, text=text, advice=advice)
