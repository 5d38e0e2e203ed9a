"""The entity that options of the command line name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from .. import options

if TYPE_CHECKING:
    from quotascope.metrics.entities import Name
    from quotascope.quotas import Entity

_NO_ENTITY = (
    "name the entity of the quota: --user, --client-id, both, --ip, or a --default-…"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whom:
    """The entity of a quota, by options."""

    user: options.NamedUser = None
    default_user: options.DefaultUser = False
    client_id: options.ClientId = None
    default_client_id: options.DefaultClientId = False
    ip: options.Ip = None
    default_ip: options.DefaultIp = False

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
                raise typer.BadParameter(
                    "an ip cannot be combined with a user or client"
                )
            return IpEntity(ip)
        if user is None and client is None:
            raise typer.BadParameter(_NO_ENTITY)
        return QuotaEntity(user, client)


def refuse_principal(entity: Entity) -> None:
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
