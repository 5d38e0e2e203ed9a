"""Whatever happens from one snapshot to the next, a push has the series that a scrape of the same snapshot shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exporter.examples import NOW, limits, snapshot
from tests.exporter.otlp.messages import pushed, scraped

from quotascope.exporter.otlp.encoding import Encoder, resource_of, unix_ns
from quotascope.exporter.otlp.push import Starts
from quotascope.exporter.snapshot import CAUSES, Callbacks, Columns, Entity, Floats, Layout, NodeUsage, Snapshot
from quotascope.exporter.snapshot.columns import NAMES
from quotascope.exporter.snapshot.layout import order
from quotascope.metrics import DEFAULT, NO_RULE, QuotaEntity, QuotaRules, QuotaType

TEXTS: Final = ("", "a", "b", "\ud800", "\\ud800", '"\\\n{}', "__overflow__", "x" * 200)
"""Names, two of which are the same once they are encoded."""
NODES: Final = ("1", "2", "10")
NUMBERS: Final = (np.nan, np.nan, 0.0, -0.0, 2.5, -1.0, 1e300, np.inf, -np.inf)
OF_USER: Final = QuotaRules({QuotaEntity("a", None): 5.0}).limit("a", "")
OF_CLIENT: Final = QuotaRules({QuotaEntity(DEFAULT, "b"): 3.0}).limit("z", "b")
RESOLUTIONS: Final = (None, NO_RULE, OF_USER, OF_CLIENT)
_Choice = TypeVar("_Choice")


class History:
    """A cluster whose every next moment is drawn."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._one = random.choice
        self._layout = Layout(())
        self._labels = ("tenant",)

    def step(self) -> Snapshot:
        """Some entities go, come, and are made again under another rule; any value may be another one."""
        if self._one((True, False)):
            self._move()
        flags = np.array(self._each((True, True, False)), np.bool_)
        shown = Columns(
            layout=self._layout,
            **{name: self._column() for name in NAMES},
            causes=np.array(self._each(range(len(CAUSES))), np.int8),
            detailed=self._one((None, flags)),
        )
        nodes = self._random.sample(NODES, self._random.randint(0, len(NODES)))
        return snapshot(
            shown=shown,
            nodes=tuple(NodeUsage(broker=node, throttling_errors={"CreateTopics": 1.0}) for node in nodes),
            callbacks=Callbacks(labels=self._labels),
            limits=self._one((None, limits())),
        )

    def _move(self) -> None:
        before = self._layout
        fates = np.array(self._each(("stays", "stays", "goes", "another rule")), str)
        gone = np.flatnonzero(fates != "stays")
        came = [self._entity() for _ in range(self._random.randint(0, 6))]
        came += [
            replace(entity, resolution=self._one(RESOLUTIONS), limit=self._one((None, 0.0, 3.0)))
            for entity in before.entities[fates == "another rule"]
        ]
        self._labels = self._one((self._labels, ("tenant",), ("team",)))
        if self._one((True, False)):
            self._layout = before.changed(gone, came)
        else:  # as where the layouts between were not seen
            self._layout = Layout(sorted([*np.delete(before.entities, gone), *came], key=order))

    def _entity(self) -> Entity:
        tagged = self._one((True, False, False))
        return Entity(
            broker=self._one(NODES),
            quota_type=self._one(tuple(QuotaType)),
            user="" if tagged else self._one(TEXTS),
            client_id="" if tagged else self._one(TEXTS),
            resolution=self._one(RESOLUTIONS),
            limit=self._one((None, 0.0, 3.0)),
            burst_tokens=self._one((None, 0.0, 33.0)),
            tags=(self._one(TEXTS),) if tagged else None,
        )

    def _column(self) -> Floats:
        if self._one((True, False, False)):
            return self._layout.absent
        return np.array(self._each(NUMBERS), np.float64)

    def _each(self, choices: Sequence[_Choice]) -> list[_Choice]:
        return self._random.choices(choices, k=len(self._layout))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), cluster=st.sampled_from((None, "prod", "\udfff")))
def test_any_history_is_as_scraped(seed: int, cluster: str | None) -> None:
    """Names, attributes and values are those of the page, however values, entities, rules, nodes and labels change."""
    history = History(Random(seed))  # noqa: S311 - no secrets here
    resource = resource_of("http://127.0.0.1:9749", cluster and "c", {})
    encoder = Encoder(resource, cluster, 100_000, Starts(1))
    for _ in range(6):
        shown = history.step()
        requests = encoder.requests(encoder.points(shown, NOW), unix_ns(NOW))
        series = pushed(request.message for request in requests)
        assert series == scraped(shown, NOW, cluster)
