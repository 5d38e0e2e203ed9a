"""An exporter of one cluster is not joined with the quotas of another."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest
from tests.cli.conftest import Run
from tests.exporter.examples import NOW, snapshot, usage
from tests.exporter.limits.test_admin import ScriptedAdmin
from tests.servers import Handler, served

from quotascope.exporter.api.documents import encoded, snapshot_document
from quotascope.exporter.snapshot import LimitsHealth

OURS = ScriptedAdmin().describe_cluster().cluster_id


@pytest.fixture(params=[OURS, "\x1b[2Jeast", None])
def cluster_id(request: pytest.FixtureRequest) -> str | None:
    """Of the exporter: ours, another one, and that of a release that did not report it."""
    found: str | None = request.param
    return found


@pytest.fixture
def exporter(cluster_id: str | None) -> Iterator[str]:
    """The address of an exporter that reads this cluster."""
    shown = snapshot(usage(usage=1.0), limits_health=LimitsHealth(read_at=NOW, cluster_id=cluster_id))

    class Api(Handler):
        def do_GET(self) -> None:  # noqa: N802 - its name there
            self.answer(200, encoded(snapshot_document(shown)))

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Api)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize("command", [("list",), ("set", "request_percentage=1", "--user", "alice")])
def test_another_cluster_is_refused(
    exporter: str, cluster_id: str | None, command: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the ids of both, where both are known; nothing is shown."""
    monkeypatch.setattr("quotascope.cli.cluster.admin_of", lambda _: ScriptedAdmin())
    code, out, err = run("quotas", *command, "--exporter", exporter, "--bootstrap-servers", "a:1")
    if cluster_id in {OURS, None}:
        assert (code, err) == (0, "")
    else:
        assert (code, out) == (1, "")
        assert "reads the Kafka cluster \\x1b[2Jeast, and the bootstrap servers are of x:" in " ".join(err.split())
