"""`quotascope quotas set` and `remove`: show a change and the affected clients, and make it with --apply."""

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
    from quotascope.clients.quota_admin import QuotaAdmin
    from quotascope.exporter.config import Config
    from quotascope.exporter.diagnosis.misnamed import Misnamed
    from quotascope.exporter.sources.peer import HttpTarget
    from quotascope.metrics.kafka.entities import Name
    from quotascope.quotas import Entity, QuotaSet, RuleChange

SET_EXAMPLES = """
Examples:

quotascope quotas set producer_byte_rate=10485760 --user alice --client-id app1 --bootstrap-servers broker-1:9092

quotascope quotas set request_percentage=200 consumer_byte_rate=5e6 --default-user --bootstrap-servers broker-1:9092 \
--exporter http://quotascope:9749 --apply

quotascope quotas set connection_creation_rate=20 --default-ip --config /etc/quotascope.yaml --apply

quotascope quotas set --measure-only --bootstrap-servers broker-1:9092 --apply

quotascope quotas set --file quotas.yaml --config /etc/quotascope.yaml --apply --json

Exit code 0: shown, or with --apply done and read back. 1: not.
"""
REMOVE_EXAMPLES = """
Examples:

quotascope quotas remove producer_byte_rate --user alice --client-id app1 --bootstrap-servers broker-1:9092

quotascope quotas remove --all --default-client-id --exporter http://quotascope:9749 --config /etc/quotascope.yaml \
--apply

Exit code 0: shown, or with --apply done and read back. 1: not.
"""
_NO_ENTITY = "name the entity of the quota: --user, --client-id, both, --ip, or a --default-…"
_File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help=(
            "Take all quotas of this YAML file, or of Strimzi's KafkaUser manifests, instead (- for standard input); "
            "other quotas stay. A removal ignores the values."
        ),
    ),
]


def _keys(incomplete: str) -> list[str]:
    """Return the keys of quotas that begin with a text."""
    from quotascope.metrics.kafka.entities import QuotaType

    keys = (*(kind.quota_key for kind in QuotaType), "connection_creation_rate")
    return [key for key in keys if key.startswith(incomplete)]


def _keys_to_set(incomplete: str) -> list[str]:
    """Return ``KEY=`` for the keys of quotas that begin with a text."""
    return [f"{key}=" for key in _keys(incomplete)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOptions:
    """Options that name the entity of a quota."""

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
    def is_used(self) -> bool:
        """True if any of the options is set."""
        return self != EntityOptions()

    def entity(self, *, may_be_empty: bool = False) -> Entity:
        """
        Return the entity that the options name.

        Raises ``typer.BadParameter`` if they name none or contradict each other, and for an empty name unless names may
        be empty.
        """
        from quotascope.metrics.kafka.entities import QuotaEntity
        from quotascope.quotas import IpEntity

        user = _name("user", self.user, default=self.default_user, may_be_empty=may_be_empty)
        client = _name("client-id", self.client_id, default=self.default_client_id, may_be_empty=may_be_empty)
        ip = _name("ip", self.ip, default=self.default_ip, may_be_empty=may_be_empty)
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
            autocompletion=_keys_to_set,
            help=(
                "producer_byte_rate, consumer_byte_rate (bytes/s), request_percentage (of a thread), "
                "controller_mutation_rate (partitions/s); of an ip: connection_creation_rate (connections/s). All "
                "per broker."
            ),
        ),
    ] = None,
    *,
    named_entity: EntityOptions,
    file: _File = None,
    measure_only: Annotated[
        bool,
        typer.Option(
            "--measure-only",
            help=(
                "Set limits that no client reaches, so that Kafka measures what clients use; for all users unless "
                "another entity is named, and of all keys unless some are named (KEY without =VALUE)."
            ),
        ),
    ] = False,
    apply: options.Apply = False,
    top: options.Top = 20,
    json: options.Json = False,
    running: RunningExporter,
    sources: SourceOptions,
) -> None:
    """
    Set quotas of a user, a client-id, a pair, an address or a default.

    Without --apply, only show what would change, and for which clients.
    """
    from quotascope.quotas import InvalidQuotas, QuotaSet, altered, merged, read_quotas

    alter: Callable[[QuotaSet], QuotaSet]
    if file is not None and (values or named_entity.is_used or measure_only):
        raise typer.BadParameter("--file takes neither values nor an entity nor --measure-only")
    if file is not None:
        alter = partial(merged, additions=read_quotas(file))
    elif measure_only:
        alter = _unreached_limits_setter(named_entity, values or [])
    else:
        entity, numbers = named_entity.entity(), _parse_values(values or [])
        _refuse_principal(entity)
        try:
            altered(QuotaSet(), entity=entity, values=numbers)
        except InvalidQuotas as error:  # keys and values that no controller stores
            error.is_of_usage = True
            raise

        def with_values(old: QuotaSet) -> QuotaSet:
            return altered(old, entity=_real_entity(entity, old), values=numbers)

        alter = with_values
    settings = sources.configuration(log_level="error")
    _change_quotas(
        settings,
        running.target(),
        alter,
        max_rows=top,
        apply=apply,
        json=json,
        never_reached=measure_only,
        connection=sources.connection,
    )


@grouped
def remove(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY]…", autocompletion=_keys, help="Such as producer_byte_rate.")
    ] = None,
    *,
    all_: Annotated[bool, typer.Option("--all", help="All quotas of this entity.")] = False,
    named_entity: EntityOptions,
    file: _File = None,
    apply: options.Apply = False,
    top: options.Top = 20,
    json: options.Json = False,
    running: RunningExporter,
    sources: SourceOptions,
) -> None:
    """
    Remove quotas of a user, a client-id, a pair, an address or a default.

    Without --apply, only show what would change, and for which clients.
    """
    from quotascope.quotas import QuotaSet, read_quotas, without, without_all

    if file is not None:
        if keys or named_entity.is_used or all_:
            raise typer.BadParameter("--file takes neither keys nor an entity nor --all")
        removed = read_quotas(file)

        def alter(old: QuotaSet) -> QuotaSet:
            real = {_real_entity(entity, old): values for entity, values in removed.items()}
            return without_all(old, removed=QuotaSet(real))
    else:
        if bool(keys) == all_:
            raise typer.BadParameter("say which quotas: keys, or --all")
        entity = named_entity.entity(may_be_empty=True)
        _refuse_unknown_keys(entity, keys or ())

        def alter(old: QuotaSet) -> QuotaSet:
            return without(old, entity=_real_entity(entity, old), keys=None if all_ else tuple(keys or ()))

    settings = sources.configuration(log_level="error")
    _change_quotas(settings, running.target(), alter, max_rows=top, apply=apply, json=json)


def _real_entity(entity: Entity, old: QuotaSet) -> Entity:
    """
    Return the configured entity that an entity with a cut name stands for; any other entity unchanged.

    Pages of the exporter show long names cut.
    """
    if entity in old or not _has_cut_name(entity):
        return entity
    from quotascope.exporter.names import known_entity
    from quotascope.quotas import IpEntity

    clients = (client for client in old if not isinstance(client, IpEntity))
    return next((client for client in clients if known_entity(client) == entity), entity)


def _has_cut_name(entity: Entity) -> bool:
    """Return whether an entity has a name that stands for a longer one."""
    from quotascope.exporter.names import is_cut
    from quotascope.quotas import IpEntity

    if isinstance(entity, IpEntity):
        return False
    return any(isinstance(name, str) and is_cut(name) for name in (entity.user, entity.client_id))


def _refuse_cut_names(entities: Iterable[Entity]) -> None:
    """Raise ``InvalidQuotas`` for new quotas of cut names: they would apply to no client."""
    from quotascope.quotas import InvalidQuotas

    for entity in filter(_has_cut_name, entities):
        raise InvalidQuotas(str(entity), ["stands for a longer name, which no quota has yet: give the name itself"])


def _with_cut_names(quotas: QuotaSet) -> QuotaSet:
    """Return the quotas with long names cut, as the names of measured clients are."""
    from quotascope.exporter.names import known_entity
    from quotascope.quotas import IpEntity, QuotaSet

    return QuotaSet(
        {entity if isinstance(entity, IpEntity) else known_entity(entity): values for entity, values in quotas.items()}
    )


def _refuse_unknown_keys(entity: Entity, keys: Iterable[str]) -> None:
    """Raise ``InvalidQuotas`` for keys that no quota of a client, or of an address, has."""
    from quotascope.metrics.kafka.validation import CLIENT_QUOTA_KEYS, IP_QUOTA_KEYS
    from quotascope.quotas import InvalidQuotas, IpEntity, problems_of

    valid_keys = IP_QUOTA_KEYS if isinstance(entity, IpEntity) else CLIENT_QUOTA_KEYS
    kind = "ip" if isinstance(entity, IpEntity) else "user"
    unknown = [key for key in keys if key not in valid_keys]
    if wrong := problems_of({kind: None}, dict.fromkeys(unknown, 1.0)):
        raise InvalidQuotas(str(entity), wrong)


def _unreached_limits_setter(named_entity: EntityOptions, keys: list[str]) -> Callable[[QuotaSet], QuotaSet]:
    """
    Return a function that adds limits which no client reaches to quotas, so that Kafka measures the clients.

    Raises ``typer.BadParameter`` and ``InvalidQuotas``.

    Args:
        named_entity: The options of the entity; all users if none is set.
        keys: The keys to set; all keys if empty.

    """
    from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
    from quotascope.quotas import UNREACHED, QuotaSet, measure_only, number_text

    entity = named_entity.entity() if named_entity.is_used else QuotaEntity(DEFAULT)
    _refuse_principal(entity)
    if not isinstance(entity, QuotaEntity):
        raise typer.BadParameter("--measure-only is for users and client-ids")
    if any("=" in key for key in keys):
        raise typer.BadParameter("--measure-only chooses the values: name keys only")
    measure_only(QuotaSet(), entity, keys)  # before Kafka is asked

    def with_unreached_limits(old: QuotaSet) -> QuotaSet:
        for key, value in old.get(entity, {}).items():
            if key in (keys or UNREACHED):
                typer.echo(
                    f"quotascope: {key} of {entity} stays {number_text(value)}: Kafka measures under it already",
                    err=True,
                )
        return measure_only(old, entity, keys or UNREACHED.keys())

    return with_unreached_limits


def _parse_values(arguments: Iterable[str]) -> dict[str, float]:
    """Return values by key from texts ``KEY=VALUE``. Raises ``typer.BadParameter``."""
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


def _change_quotas(
    config: Config,
    exporter: HttpTarget | None,
    alter: Callable[[QuotaSet], QuotaSet],
    *,
    max_rows: int,
    apply: bool,
    json: bool,
    never_reached: bool = False,
    connection: Sequence[str] = (),
) -> None:
    """
    Show a change of the cluster's quotas; with ``apply``, make the change and read it back.

    Raises ``InvalidQuotas``, ``NotApplied``, ``ClientError`` and ``ConfigError``.

    Args:
        config: The connection to Kafka, and maybe sources.
        exporter: An exporter that reports the usage of entities; None to read the sources, if there are any.
        alter: Function of the current quotas that returns the new ones.
        max_rows: Most affected entities that are shown.
        apply: Whether to make the change.
        json: Whether to print one document with the outcome, also after a failure.
        never_reached: Whether to refuse limits that current usage is close to.
        connection: The options of a command that connects to the same Kafka.

    """
    from rich.console import Console

    from quotascope.exporter.diagnosis.impact import impacts, ip_impacts, reaching
    from quotascope.quotas import InvalidQuotas, NotApplied, QuotaSet, apply_changes, difference

    from ..cluster import admin, refuse_other_cluster, usage
    from . import misnamed_view
    from .change_view import Affected, as_json, overruled_changes, view

    with admin(config) as quota_admin:
        old = QuotaSet.of(quota_admin.describe_quotas())
        new = alter(old)
        _refuse_cut_names(new.keys() - old.keys())
        changes = difference(old, new)
        _warn_of_unenforced(quota_admin, changes)
        snapshot = usage(config, exporter) if changes else None
        if snapshot is not None and exporter is not None:
            refuse_other_cluster(quota_admin.describe_cluster().cluster_id, exporter, snapshot)
        affected = None
        if not changes:
            affected = Affected((), ())
        elif snapshot is not None:
            clients = impacts(_with_cut_names(old), _with_cut_names(new), snapshot.measured)
            affected = Affected(clients, ip_impacts(old, new, snapshot.nodes), snapshot.incomplete)
        doubtful = misnamed_view.of_changes(changes, old, snapshot)
        overruled = overruled_changes(changes, new)
        plan = as_json(changes, affected, max_rows, doubtful, connection, overruled) if json else None
        if not changes:
            _print_outcome(plan, "nothing to change: the cluster has these quotas already")
            return
        if plan is None:
            Console().print(view(changes, affected, max_rows, overruled))
            _print_doubts(doubtful, connection)
        if never_reached and snapshot is not None:
            reached = reaching(changes, snapshot.measured)
            if reached:
                _print_outcome(plan)
                raise InvalidQuotas("--measure-only", reached)
        if not apply:
            _print_outcome(plan, "nothing was changed: pass --apply to change it")
            return
        try:
            apply_changes(quota_admin, changes)
        except NotApplied as error:
            _print_outcome(plan, not_in_force=error.missing)
            raise
        plural = "" if len(changes) == 1 else "s"
        _print_outcome(plan, f"applied and read back: {len(changes)} quota{plural}", not_in_force=())


def _print_doubts(doubtful: Mapping[Entity, Misnamed], connection: Sequence[str]) -> None:
    """Print the rules that would apply to no client because of their name, and an empty line below."""
    from . import misnamed_view

    for line in misnamed_view.lines(doubtful.values(), connection):
        typer.echo(line)
    if doubtful:
        typer.echo()


def _warn_of_unenforced(quota_admin: QuotaAdmin, changes: Iterable[RuleChange]) -> None:
    """Print a warning for quotas to be set that the cluster's release stores and does not enforce."""
    from ..cluster import releases_of, warn_of_unenforced

    keys = [change.key for change in changes if change.new is not None]
    if keys:
        warn_of_unenforced(releases_of(quota_admin), keys)


def _print_outcome(
    plan: Mapping[str, object] | None, text: str = "", *, not_in_force: Sequence[str] | None = None
) -> None:
    """
    Print the outcome of a change.

    Args:
        plan: The change as a document for programs; None to print the text.
        text: The outcome in words.
        not_in_force: Sentences about quotas that are not in force after the change; None without --apply.

    """
    if plan is not None:
        outcome = {"applied": not_in_force == (), "not_in_force": not_in_force}
        outputs.put_json({**plan, **outcome})
    elif text:
        typer.echo(text)


def _refuse_principal(entity: Entity) -> None:
    """Raise ``typer.BadParameter`` for a name in the form of a principal, and for the text of the default in files."""
    from quotascope.quotas import DEFAULT_TEXT, PRINCIPAL_TYPE, names_of

    for kind, name in names_of(entity).items():
        if kind == "user" and isinstance(name, str) and name.startswith(PRINCIPAL_TYPE):
            alone = name.removeprefix(PRINCIPAL_TYPE)[:60]
            raise typer.BadParameter(
                f"--user takes the name of the principal alone: {alone!r}; a name that really begins with "
                f"{PRINCIPAL_TYPE} goes into a --file"
            )
        if name == DEFAULT_TEXT:
            raise typer.BadParameter(
                f"for the default give --default-{kind}; a name that really is {DEFAULT_TEXT} goes into a --file: "
                f"`{kind}: {{name: "
                f'"{DEFAULT_TEXT}"}}`'
            )


def _name(kind: str, name: str | None, *, default: bool, may_be_empty: bool) -> Name | None:
    """Return the name, the default, or None for neither, from the options of a kind. Raises ``typer.BadParameter``."""
    from quotascope.metrics.kafka.entities import DEFAULT

    if name is None:
        return DEFAULT if default else None
    if default:
        raise typer.BadParameter(f"--{kind} and --default-{kind} exclude each other")
    if not name and not may_be_empty:
        raise typer.BadParameter(f"--{kind} is empty; the default is --default-{kind}")
    return name
