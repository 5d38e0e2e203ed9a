"""`quotascope explain`: which quota applies to a user and a client-id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import options, outputs
from .options import grouped
from .settings import AdminOptions, RunningExporter

if TYPE_CHECKING:
    from quotascope.exporter.snapshot import Snapshot

EXAMPLES = """
Examples:

quotascope explain --user alice --client-id app1 --bootstrap-servers broker-1:9092

quotascope explain --user CN=app,O=Org --config /etc/quotascope.yaml --json

quotascope explain --user alice --exporter http://quotascope:9749

quotascope explain --client-id spark --bootstrap-servers broker-1:9093 --security-protocol SASL_SSL --sasl-username \
me --sasl-password-file pw
"""


@grouped
def explain(
    *,
    user: Annotated[str, options.USER] = "ANONYMOUS",
    client_id: options.ClientId = None,
    running: RunningExporter,
    kafka: AdminOptions,
    json: options.Json = False,
) -> None:
    """
    Show the eight levels at which a quota can be set, which are set, and which applies.

    Without --client-id: for any client-id that no quota names. With an empty one: for clients that send none.

    Works without traffic and without sources: it needs only the Admin API, or a running exporter. With an exporter,
    it also shows what the client uses on the whole cluster.
    """
    import asyncio

    from quotascope.exporter.diagnosis.cluster_usage import cluster_lines
    from quotascope.exporter.diagnosis.explain import as_json, counting, user_of
    from quotascope.exporter.diagnosis.explain import explain as explain_limits
    from quotascope.exporter.untrusted import one_line

    from . import explain_view
    from .cluster import exporter_state, read_limits, warn_of_callbacks

    exporter, settings = running.target(), kafka.configuration()
    snapshot: Snapshot | None = None
    if exporter is None:
        limits = asyncio.run(read_limits(settings))
    else:
        limits, snapshot = asyncio.run(exporter_state(exporter))
    name = user_of(limits, user)
    if name != user:
        typer.echo(
            f"quotascope: {one_line(user)} is a principal: explaining its user {one_line(name)}, the name that "
            "quotas are set for",
            err=True,
        )
    explanations = explain_limits(limits, name, client_id, () if snapshot is None else snapshot.nodes)
    callbacks = warn_of_callbacks(limits)
    if json:
        answer = as_json(name, client_id, explanations, callbacks)
        outputs.put_json(answer)
    else:
        from rich.console import Console

        of_cluster = () if snapshot is None else cluster_lines(snapshot, counting(explanations, name, client_id))
        Console().print(explain_view.as_table(name, client_id, explanations, of_cluster))
