"""`quotascope explain`: which quota decides for a user and a client id."""

from __future__ import annotations

import asyncio
import json as jsonlib
from typing import TYPE_CHECKING

import typer

from . import options
from .grouping import grouped
from .settings import Asking

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
    client_id: options.ClientId = "",
    kafka: Asking,
    json: options.Json = False,
) -> None:
    """
    Show the eight levels at which a quota can be set, which are, and which decides.

    Works without traffic and without sources: only the Admin API is asked.
    """
    from quotascope.exporter.explain import explain as explain_limits
    from quotascope.exporter.explain import overruling
    from quotascope.exporter.untrusted import one_line

    from . import explain_view

    settings = kafka.configuration()
    limits = asyncio.run(read_limits(settings))
    explanations = explain_limits(limits, user, client_id)
    for node_id, name in overruling(limits).items():
        typer.echo(
            f"quotascope: node {node_id} leaves quotas to {one_line(name)}: that decides there, and not what follows",
            err=True,
        )
    if json:
        answer = explain_view.as_json(user, client_id, explanations)
        typer.echo(jsonlib.dumps(answer, indent=2))
    else:
        from rich.console import Console

        Console().print(explain_view.as_table(user, client_id, explanations))


async def read_limits(config: Config) -> Limits:
    """The configured limits, read once. Raises ``LimitsError``, ``ConfigError`` and ``ClientError``."""
    from .compose import kafka_of, limits_of

    source = limits_of(kafka_of(config))
    try:
        return await source.read()
    finally:
        await source.close()
