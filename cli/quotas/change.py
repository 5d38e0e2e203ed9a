"""`quotascope quotas set` and `remove`: what changes and for whom, and with --apply the change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import options, outputs
from ..options import grouped
from ..settings import RunningExporter, SourceOptions

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.exporter.sources.fetch import HttpTarget
    from quotascope.metrics.entities import Name
    from quotascope.quotas import Entity, QuotaSet

SET_EXAMPLES = """
Examples:

quotascope quotas set producer_byte_rate=10485760 --user alice --client-id app1 --bootstrap-servers broker-1:9092

quotascope quotas set request_percentage=200 consumer_byte_rate=5e6 --default-user --bootstrap-servers broker-1:9092 --exporter http://quotascope:9749 --apply

quotascope quotas set connection_creation_rate=20 --default-ip --config /etc/quotascope.yaml --apply

quotascope quotas set --measure-only --bootstrap-servers broker-1:9092 --apply

quotascope quotas set --file quotas.yaml --config /etc/quotascope.yaml --apply --json

Exit code 0: shown, or with --apply done and read back. 1: not.
"""
REMOVE_EXAMPLES = """
Examples:

quotascope quotas remove producer_byte_rate --user alice --client-id app1 --bootstrap-servers broker-1:9092

quotascope quotas remove --all --default-client-id --exporter http://quotascope:9749 --config /etc/quotascope.yaml --apply

Exit code 0: shown, or with --apply done and read back. 1: not.
"""
_NO_ENTITY = "name the entity of the quota: --user, --client-id, both, --ip, or a --default-…"
_Apply = Annotated[bool, typer.Option("--apply", help="Change the cluster. Without it, only show.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whom:
    """The entity of a quota, by options."""

    user: Annotated[str | None, options.USER] = None
    default_user: Annotated[
        bool, options.entity_option("--default-user", help="All users without a quota of their own.")
    ] = False
    client_id: options.ClientId = None
    default_client_id: Annotated[
        bool, options.entity_option("--default-client-id", help="All client-ids without a quota of their own.")
    ] = False
    ip: Annotated[
        str | None,
        options.entity_option(
            metavar="ADDRESS", help="An IP address, or the name of a host that the brokers can look up."
        ),
    ] = None
    default_ip: Annotated[
        bool, options.entity_option("--default-ip", help="All addresses without a quota of their own.")
    ] = False

    @property
    def named(self) -> bool:
        """Whether any of the options was given."""
        return self != Whom()

    def entity(self) -> Entity:
        """The entity. Raises ``typer.BadParameter`` when there is none, or for a combination that is none."""
        from quotascope.metrics import QuotaEntity
        from quotascope.quotas import IpEntity

        user = _name("user", self.user, default=self.default_user)
        client = _name("client-id", self.client_id, default=self.default_client_id)
        ip = _name("ip", self.ip, default=self.default_ip)
        if ip is not None:
            if user is not None or client is not None:
                raise typer.BadParameter("an ip cannot be combined with a user or client")
            return IpEntity(ip)
        if user is None and client is None:
            raise typer.BadParameter(_NO_ENTITY)
        return QuotaEntity(user, client)


@grouped
def set_(
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]…",
            help="producer_byte_rate, consumer_byte_rate (bytes/s), request_percentage (of a thread), controller_mutation_rate (partitions/s); of an ip: connection_creation_rate (connections/s). All per broker.",
        ),
    ] = None,
    *,
    whom: Whom,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Set all quotas of this YAML file instead (- for standard input); others stay."
        ),
    ] = None,
    measure_only: Annotated[
        bool,
        typer.Option(
            "--measure-only",
            help="Set limits that no client reaches, so that Kafka measures what clients use; for all users unless another entity is named, and of all keys unless some are named (KEY without =VALUE).",
        ),
    ] = False,
    apply: _Apply = False,
    top: options.Top = 20,
    json: options.Json = False,
    running: RunningExporter,
    read: SourceOptions,
) -> None:
    """Set quotas of a user, a client-id, a pair, an address or a default. Without --apply, only show what would change, and for which clients."""
    from quotascope.quotas import QuotaSet, altered, merged, read_quotas

    wanted: Callable[[QuotaSet], QuotaSet]
    if file is not None and (values or whom.named or measure_only):
        raise typer.BadParameter("--file takes neither values nor an entity nor --measure-only")
    if file is not None:
        wanted = partial(merged, others=read_quotas(file))
    elif measure_only:
        wanted = _measure_only(whom, values or [])
    else:
        entity, numbers = whom.entity(), _parsed(values or [])
        _refuse_principal(entity)
        wanted = partial(altered, entity=entity, values=numbers)
        wanted(QuotaSet())  # what no controller stores is refused before Kafka is asked
    settings = read.configuration(log_level="error")
    _alter(settings, running.target(), wanted, most=top, apply=apply, json=json, never_reached=measure_only)


@grouped
def remove(
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]…", help="Such as producer_byte_rate.")] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="All quotas of this entity.")] = False,
    whom: Whom,
    apply: _Apply = False,
    top: options.Top = 20,
    json: options.Json = False,
    running: RunningExporter,
    read: SourceOptions,
) -> None:
    """Remove quotas of a user, a client-id, a pair, an address or a default. Without --apply, only show what would change, and for which clients."""
    from quotascope.quotas import InvalidQuotas, problems_of, to_admin, without

    if bool(keys) == all_:
        raise typer.BadParameter("say which quotas: keys, or --all")
    entity = whom.entity()
    if wrong := problems_of(to_admin(entity), dict.fromkeys(keys or (), 1.0)):
        raise InvalidQuotas(str(entity), wrong)
    settings = read.configuration(log_level="error")
    chosen = None if all_ else tuple(keys or ())
    _alter(settings, running.target(), lambda old: without(old, entity, chosen), most=top, apply=apply, json=json)


def _measure_only(whom: Whom, keys: list[str]) -> Callable[[QuotaSet], QuotaSet]:
    from quotascope.metrics import DEFAULT, QuotaEntity
    from quotascope.quotas import UNREACHED, QuotaSet, measure_only, number_text

    entity = whom.entity() if whom.named else QuotaEntity(DEFAULT)
    _refuse_principal(entity)
    if not isinstance(entity, QuotaEntity):
        raise typer.BadParameter("--measure-only is for users and client-ids")
    if any("=" in key for key in keys):
        raise typer.BadParameter("--measure-only chooses the values: name keys only")
    measure_only(QuotaSet(), entity, keys)  # before Kafka is asked

    def wanted(old: QuotaSet) -> QuotaSet:
        for key, value in old.get(entity, {}).items():
            if key in (keys or UNREACHED):
                typer.echo(
                    f"quotascope: {key} of {entity} stays {number_text(value)}: Kafka measures under it already",
                    err=True,
                )
        return measure_only(old, entity, keys or UNREACHED.keys())

    return wanted


def _parsed(arguments: Iterable[str]) -> dict[str, float]:
    """Values by key from ``KEY=VALUE``. Raises ``typer.BadParameter``."""
    from quotascope.quotas import number

    values: dict[str, float] = {}
    for argument in arguments:
        key, equals, text = argument.partition("=")
        value = number(text.strip())
        if not equals or value is None:
            raise typer.BadParameter(f"{argument[:60]!r} is not KEY=VALUE with a plain number")
        if key.strip() in values:
            raise typer.BadParameter(f"{key.strip()[:60]!r} is there twice")
        values[key.strip()] = value
    if not values:
        raise typer.BadParameter("say what to set: KEY=VALUE, or --file FILE")
    return values


def _alter(
    config: Config,
    exporter: HttpTarget | None,
    wanted: Callable[[QuotaSet], QuotaSet],
    *,
    most: int,
    apply: bool,
    json: bool,
    never_reached: bool = False,
) -> None:
    """
    Show the difference between the quotas of the cluster and the wanted ones; with ``apply`` make it, and read it back.

    Raises ``InvalidQuotas``, ``NotApplied``, ``ClientError`` and ``ConfigError``.

    Args:
        config: where Kafka is, and maybe the sources.
        exporter: reports the usage of entities; None reads the sources, if there are any.
        wanted: the new quotas by the current ones.
        most: how many of the affected are shown.
        apply: whether to do it.
        json: print one document when it is known what was done; after a failure, too.
        never_reached: refuse limits that current usage is close to.

    """
    from rich.console import Console

    from quotascope.exporter.diagnosis.impact import impacts, ip_impacts, reaching
    from quotascope.quotas import InvalidQuotas, NotApplied, QuotaSet, apply_changes, difference

    from ..cluster import admin, refuse_other_cluster, usage
    from .change_view import Affected, as_json, view

    with admin(config) as opened:
        old = QuotaSet.of(opened.describe_quotas())
        new = wanted(old)
        changes = difference(old, new)
        snapshot = usage(config, exporter) if changes else None
        if snapshot is not None and exporter is not None:
            refuse_other_cluster(opened.describe_cluster().cluster_id, exporter, snapshot)
        affected = None if changes else Affected((), ())
        if snapshot is not None:
            clients = impacts(old, new, snapshot.measured)
            affected = Affected(clients, ip_impacts(old, new, snapshot.nodes), snapshot.incomplete)
        plan = as_json(changes, affected, most) if json else None
        if not changes:
            _end(plan, "nothing to change: the cluster has these quotas already")
            return
        if plan is None:
            Console().print(view(changes, affected, most))
        if never_reached and snapshot is not None:
            reached = reaching(changes, snapshot.measured)
            if reached:
                _end(plan)
                raise InvalidQuotas("--measure-only", reached)
        if not apply:
            _end(plan, "nothing was changed: pass --apply to change it")
            return
        try:
            apply_changes(opened, changes)
        except NotApplied as error:
            _end(plan, not_in_force=error.missing)
            raise
        plural = "" if len(changes) == 1 else "s"
        _end(plan, f"applied and read back: {len(changes)} quota{plural}", not_in_force=())


def _end(plan: Mapping[str, object] | None, text: str = "", *, not_in_force: Sequence[str] | None = None) -> None:
    """Print what was done: a plan for programs as one document with it, else the text. None of ``not_in_force``: nothing was tried."""
    if plan is not None:
        done = {"applied": not_in_force == (), "not_in_force": not_in_force}
        outputs.put_json({**plan, **done})
    elif text:
        typer.echo(text)


def _refuse_principal(entity: Entity) -> None:
    """Raise ``typer.BadParameter`` for the string form of a principal, which no quota of Kafka is looked up by."""
    from quotascope.exporter.diagnosis.explain import PRINCIPAL_TYPE

    user = getattr(entity, "user", None)
    if isinstance(user, str) and user.startswith(PRINCIPAL_TYPE):
        name = user.removeprefix(PRINCIPAL_TYPE)[:60]
        raise typer.BadParameter(
            f"--user takes the name of the principal alone: {name!r}; a name that really begins with {PRINCIPAL_TYPE} goes into a --file"
        )


def _name(kind: str, name: str | None, *, default: bool) -> Name | None:
    from quotascope.metrics import DEFAULT

    if name is None:
        return DEFAULT if default else None
    if default:
        raise typer.BadParameter(f"--{kind} and --default-{kind} exclude each other")
    if not name:
        raise typer.BadParameter(f"--{kind} is empty; the default is --default-{kind}")
    return name
