"""`quotascope explain`: which quota decides for a user and a client id."""

from __future__ import annotations

import asyncio
import json as jsonlib
from typing import TYPE_CHECKING

import typer

from . import options
from .grouping import grouped
from .settings import AdminOptions

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.exporter.limits import Limits

EXAMPLES = """
Examples:

quotascope explain --user alice --client-id app1 --bootstrap-servers broker-1:9092

quotascope explain --user CN=app,O=Org --config /etc/quotascope.yaml --json

quotascope explain --client-id spark --bootstrap-servers broker-1:9093 --security-protocol SASL_SSL --sasl-username me --sasl-password-file pw
"""


@grouped
def explain(
    *,
    user: options.User = "ANONYMOUS",
    client_id: options.ClientId = None,
    kafka: AdminOptions,
    json: options.Json = False,
) -> None:
    """
    Show the eight levels at which a quota can be set, which are, and which decides.

    Without --client-id: for any client-id that no quota names. With an empty one: for clients that send none.

    Works without traffic and without sources: only the Admin API is asked.
    """
    from quotascope.exporter.explain import explain as explain_limits
    from quotascope.exporter.explain import overruling, user_of
    from quotascope.exporter.untrusted import one_line

    from . import explain_view

    settings = kafka.configuration()
    limits = asyncio.run(read_limits(settings))
    name = user_of(limits, user)
    if name != user:
        typer.echo(
            f"quotascope: {one_line(user)} is a principal: explaining its user {one_line(name)}, the name that quotas are set for",
            err=True,
        )
    explanations = explain_limits(limits, name, client_id)
    callbacks = overruling(limits)
    for node_id, callback in callbacks.items():
        typer.echo(
            f"quotascope: node {node_id} leaves quotas to {one_line(callback)}: that decides there, and not what follows",
            err=True,
        )
    if json:
        answer = explain_view.as_json(name, client_id, explanations, callbacks)
        typer.echo(jsonlib.dumps(answer, indent=2))
    else:
        from rich.console import Console

        Console().print(explain_view.as_table(name, client_id, explanations))


async def read_limits(config: Config) -> Limits:
    """The configured limits, read once. Raises ``LimitsError``, ``ConfigError`` and ``ClientError``."""
    from .compose import kafka_of, limits_of

    source = limits_of(kafka_of(config))
    try:
        return await source.read()
    finally:
        await source.close()
