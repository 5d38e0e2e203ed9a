"""Lines of a page, for tests that are about a few families."""

from tests.exporter.exposition.oracle import page

from quotascope.exporter.exposition import Renderer
from quotascope.exporter.snapshot import Snapshot


def lines(snapshot: Snapshot, beginning: str) -> list[str]:
    """The series whose names begin so, as text: what prometheus_client writes, and the renderer as well."""
    text = page(snapshot, snapshot.taken_at)
    assert Renderer().render(snapshot, snapshot.taken_at) == text
    return [line for line in text.decode().splitlines() if line.startswith(beginning)]
