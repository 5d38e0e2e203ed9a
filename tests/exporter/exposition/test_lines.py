"""The lines of families whose labels follow from the cluster, from one snapshot to the next."""

import pytest
from tests.exporter.examples import NOW, snapshot

from quotascope.exporter.exposition import TEXT, Renderer, exposition
from quotascope.exporter.snapshot import Callbacks, Entity, EntityUsage, Snapshot
from quotascope.metrics import QuotaType


def under(*labels: str, usage: float = 1.0) -> Snapshot:
    """Two entities of a custom callback that has these tags."""
    usages = [
        EntityUsage(
            entity=Entity(
                broker="1",
                quota_type=QuotaType.PRODUCE,
                user="",
                client_id="",
                tags=(value,) * len(labels),
            ),
            usage=usage,
        )
        for value in ("a", "b")
    ]
    return snapshot(*usages, callbacks=Callbacks(labels=labels))


@pytest.mark.parametrize(
    "after",
    [
        under("tier"),
        under("tenant", "tier"),
        under("tenant", usage=2.0),
        under(),
        snapshot(),
    ],
)
def test_a_callback_that_chooses_other_tags_is_followed(after: Snapshot) -> None:
    """Values that are the same under other labels are other series; the ones before may come back."""
    renderer = Renderer()
    before = under("tenant")
    for shown in (before, before, after, before, after):
        assert renderer.render(shown, NOW) == exposition(shown, NOW, TEXT)
