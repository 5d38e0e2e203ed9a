"""Our own renderer beside prometheus_client: the same bytes, after any sequence of snapshots."""

from __future__ import annotations

import math
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exporter.examples import NOW, limits, snapshot, usage
from tests.exporter.exposition.oracle import on_page, samples
from tests.exporter.recorded import TAKEN_AT
from tests.strategies import HOSTILE, examples, texts

from quotascope.exporter.exposition import (
    OPENMETRICS,
    TEXT,
    Format,
    Renderer,
    exposition,
)
from quotascope.exporter.snapshot import (
    Cause,
    Entity,
    EntityUsage,
    NodeUsage,
    Peaks,
    Snapshot,
)
from quotascope.metrics import DEFAULT, Level, QuotaEntity, QuotaType, Resolution

FORMATS = (TEXT, OPENMETRICS)

names = st.one_of(
    st.sampled_from(("", "a", "b", "\ud800", "\\ud800", "%s", *HOSTILE)),
    st.text(alphabet='ab"\\\n%{}é\udfff', max_size=4),
)
numbers = st.one_of(
    st.none(),
    st.floats(),
    st.sampled_from((0.0, -0.0, 1.0, 1, 7, 1e6, 1e-5, -1e7, 2.5e9, math.nan)),
)
rules = st.one_of(
    st.none(),
    st.builds(
        Resolution,
        level=st.just(Level.USER),
        entity=st.one_of(
            st.none(), st.builds(QuotaEntity, st.one_of(names, st.just(DEFAULT)))
        ),
        bound=st.none(),
    ),
)
entities = st.builds(
    Entity,
    broker=st.sampled_from(("1", "2", "10", "x")),
    quota_type=st.sampled_from(QuotaType),
    user=names,
    client_id=names,
    resolution=rules,
    limit=numbers,
    burst_tokens=numbers,
)
figures: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "usage": numbers,
        "throttle_time_seconds": st.sampled_from((0.0, 0.25, 3.0)),
        "tokens": numbers,
        "cause": st.one_of(st.none(), st.sampled_from(Cause)),
        "throttled_seconds_total": numbers,
        "throttled_requests_total": numbers,
        "rejected_mutations_total": numbers,
        "detailed": st.booleans(),
    }
)


def peaks(shown: list[Entity]) -> st.SearchStrategy[Peaks | None]:
    """Maxima of some of these, if there is sampling."""
    some = st.dictionaries(st.sampled_from([*map(id, shown), 0]), st.floats())
    return st.none() | st.builds(
        Peaks,
        utilization=some,
        burst_used=some,
        delay_queue_size=st.just({("2", QuotaType.FETCH): 3.0}),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots that share entities and usages: these come, go, stay, change their place and their numbers."""
    pool = draw(st.lists(entities, min_size=1, max_size=8))
    history = []
    last: dict[int, EntityUsage] = {}
    for _ in range(draw(st.integers(1, 5))):
        chosen = draw(st.lists(st.sampled_from(pool), max_size=8))
        chosen = draw(
            st.sampled_from((chosen, pool, pool[::-1], [*map(replace, pool)]))
        )
        usages = [
            (draw(st.booleans()) and last.get(id(each)))
            or EntityUsage(entity=each, **draw(figures))
            for each in chosen
        ]
        last |= {id(each.entity): each for each in usages}
        node = NodeUsage(broker="2", throttling_errors={draw(names): 1.0})
        rules = draw(st.sampled_from((None, limits(), limits(rules={}))))
        shown = snapshot(
            *usages, nodes=(node,), limits=rules, peaks=draw(peaks(chosen))
        )
        history.append(shown)
    return history


@settings(max_examples=examples(60), deadline=None)
@given(history=histories(), cluster=st.sampled_from((None, "prod", 'a"\\\n')))
def test_series_are_those_of_the_snapshot(
    history: list[Snapshot], cluster: str | None
) -> None:
    """Each family shows the field that it is about, under the labels of whom it is about, and nothing twice."""
    renderer = Renderer(cluster)
    for step, shown in enumerate(history):
        page = on_page(renderer.render(shown, NOW + step))
        assert len(page) == len(set(page))
        assert set(page) == samples(shown, NOW + step, cluster)


@settings(max_examples=examples(100), deadline=None)
@given(history=histories(), cluster=st.one_of(st.none(), texts))
def test_bytes_are_those_of_the_client_library(
    history: list[Snapshot], cluster: str | None
) -> None:
    """Whatever was shown before, both formats are equal to what prometheus_client writes."""
    renderer = Renderer(cluster)
    for step, shown in enumerate(history):
        for text_format in FORMATS:
            expected = exposition(shown, NOW + step, text_format, cluster)
            assert renderer.render(shown, NOW + step, text_format) == expected


@pytest.mark.parametrize("text_format", FORMATS)
@pytest.mark.parametrize("cluster", [None, "prod"])
def test_recorded_nodes_one_after_the_other(
    text_format: Format, cluster: str | None, request: pytest.FixtureRequest
) -> None:
    """A renderer that saw other clusters writes what a new one would."""
    renderer = Renderer(cluster)
    for name in ("split_throttled", "pair_throttled", "tiered_throttled") * 2:
        shown: Snapshot = request.getfixturevalue(name)
        expected = exposition(shown, TAKEN_AT, text_format, cluster)
        assert renderer.render(shown, TAKEN_AT, text_format) == expected
        page = renderer.render(shown, TAKEN_AT)
        assert set(on_page(page)) == samples(shown, TAKEN_AT, cluster)


def many(step: int, count: int = 300) -> list[EntityUsage]:
    """Entities of which a few are others with each step, and the others the same objects."""
    return [
        EntityUsage(
            entity=one_of_many(f"user-{at}-{step if at % 50 == 0 else 0}"),
            usage=at * step / 7,
        )
        for at in range(count)
    ]


@cache
def one_of_many(user: str) -> Entity:
    """Always the same object."""
    return usage(user=user).entity


def test_crowd_in_which_little_changes() -> None:
    """Of two nodes in any sequence clients come, go, and change numbers or details, while most usages stay as they are."""
    renderer = Renderer()
    crowd = [
        usage(broker=str(at % 2), user=f"user-{at * 7 % 60:02}") for at in range(60)
    ]
    for step in range(12):
        at = step * 5
        crowd[at] = replace(crowd[at], usage=step / 7)
        crowd[at + 1] = replace(crowd[at + 1], detailed=step % 2 == 0)
        crowd[at + 2] = usage(broker="1", user=f"new-{step}", usage=1.5)
        crowd = [
            *crowd[: at + 3],
            usage(broker="0", user=f"user-{step}x"),
            *crowd[at + 4 :],
        ]
        if step % 3 == 0:
            del crowd[-1]
        else:
            crowd.append(usage(broker="1", user=f"last-{step}", usage=2.0))
        for text_format in FORMATS:
            shown = snapshot(*crowd)
            expected = exposition(shown, NOW, text_format)
            assert renderer.render(shown, NOW, text_format) == expected


@pytest.mark.parametrize("out_of_order", [None, 4])
def test_sorted_crowd_of_a_single_node(out_of_order: int | None) -> None:
    """As the join leaves it: clients of each type stand together, and come and go at any place among them."""
    renderer = Renderer()
    crowd = [
        usage(user=f"user-{at:02}", quota_type=kind)
        for kind in (QuotaType.PRODUCE, QuotaType.REQUEST)
        for at in range(0, 60, 2)
    ]
    for step in range(10):
        for at in (7 * step % 40, 45):
            user = f"{crowd[at].entity.user}-{step}"
            crowd.insert(
                at + 1, usage(user=user, quota_type=crowd[at].entity.quota_type)
            )
            del crowd[at - 2]
        if step == out_of_order:
            crowd.insert(3, usage(user="a", quota_type=QuotaType.PRODUCE))
        shown = snapshot(*crowd)
        assert renderer.render(shown, NOW) == exposition(shown, NOW)


def test_scrapes_at_the_same_time() -> None:
    """Two scrapers in two formats do not get into each other's way, nor a late one with an old snapshot."""
    renderer = Renderer()
    shown = [snapshot(*many(step)) for step in range(6)]
    asked = [(each, text_format) for each in shown for text_format in FORMATS] * 3
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda each: renderer.render(each[0], NOW, each[1]), asked)
        )
    assert answers == [exposition(each, NOW, kind) for each, kind in asked]


def test_texts_that_somebody_reads_stay_as_they_were() -> None:
    """The memory of a text is used again only when nobody holds it."""
    renderer = Renderer()
    shown = [snapshot(*many(step)) for step in range(6)]
    texts = [renderer.render(each, NOW) for each in shown]
    texts += [renderer.render(each, NOW, OPENMETRICS) for each in shown]
    assert texts == [
        exposition(each, NOW, text_format)
        for text_format in (TEXT, OPENMETRICS)
        for each in shown
    ]


def test_memory_of_a_text_that_nobody_reads_is_used_again() -> None:
    """Two texts take turns: the third is written where the first was."""
    renderer = Renderer()
    crowd = snapshot(*many(0, 3000))
    size = len(renderer.render(crowd, NOW))
    renderer.render(crowd, NOW)
    tracemalloc.start()
    try:
        renderer.render(crowd, NOW)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < size / 2


@pytest.mark.parametrize("both_at_first", [True, False])
def test_names_that_look_alike_in_utf8_are_one_series(both_at_first: bool) -> None:  # noqa: FBT001 - a case
    """Half of a surrogate pair is spelled out, which is what another name may be; the first of them is shown."""
    half, spelled = usage(user="\ud800", usage=1.0), usage(user="\\ud800", usage=2.0)
    others = [usage(user=f"user-{at}", usage=0.5) for at in range(3)]
    renderer = Renderer()
    for each in ((half, spelled) if both_at_first else (spelled,), (half, spelled)):
        shown = snapshot(*others, *each)
        assert renderer.render(shown, NOW) == exposition(shown, NOW)


def test_failure_leaves_nothing_behind() -> None:
    """A scrape that failed half way does not spoil the next one."""
    renderer = Renderer()
    renderer.render(snapshot(*many(1)), NOW)
    broken: Any = usage(user="broken", usage="no number")
    with pytest.raises(ValueError, match="could not convert"):
        renderer.render(snapshot(*many(2), broken), NOW)
    shown = snapshot(*many(3))
    assert renderer.render(shown, NOW) == exposition(shown, NOW)


def test_what_is_gone_is_forgotten() -> None:
    """Clients that come and go leave no memory behind."""
    tracemalloc.start()
    try:
        renderer = Renderer()
        sizes = []
        for step in range(12):
            renderer.render(snapshot(*others(step)), NOW)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(sizes[6:]) < 1.2 * max(sizes[:6])


def others(step: int) -> list[EntityUsage]:
    """Entities that nobody saw before."""
    return [usage(user=f"user-{step}-{at}", usage=1.5) for at in range(200)]
