"""Makes plans, and changes them when a few columns of a layout are others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from quotascope.metrics import NO_RULE, QuotaType

from ..beans import Layout
from ..difference import replaced
from ..limits import Limits, NodeSettings
from ..mapping import USAGE, Meaning
from ..snapshot import Entity
from .interpretation import CallbackTags, Found, Interpreter, Tags
from .plan import NOWHERE, CallbackPlaces, NodePlaces, Places, Plan
from .standing import NO_RULES, standing_of

_TYPES: Final = tuple(QuotaType)
_MOST_CHANGES: Final = 4
"""One column in so many may be another one before a plan is made anew."""


class Planner:
    """Keeps the plan of one node for as long as its layout and limits stay the same."""

    def __init__(self, node_id: str) -> None:
        self._node_id = node_id
        self._interpreter = Interpreter()
        self._found: Sequence[Found | None] = ()
        self._plan: Plan | None = None

    def sees_callback(self, layout: Layout) -> bool:
        """Whether a custom quota callback is at work, by the tags of beans."""
        return self._interpreter.sees_callback(layout)

    def plan(self, layout: Layout, limits: Limits | None) -> Plan:
        """The plan for a layout. Entities outlive a change of layout, but not one of limits."""
        plan, known = self._plan, self._found
        self._found = self._interpreter.found_in(layout)
        entities: Mapping[Tags, Places] = {}
        if plan is not None and plan.serves(limits):
            plan.limits = limits
            if plan.layout is layout:
                return plan
            entities = plan.entities
            self._plan = self._updated(plan, layout, known)
            if self._plan is not None:
                return self._plan
        self._plan = self._made(layout, limits, entities)
        return self._plan

    def _updated(
        self, plan: Plan, layout: Layout, known: Sequence[Found | None]
    ) -> Plan | None:
        """The plan after a change of few columns, None when it is easier made anew."""
        now = self._found
        places = replaced(plan.layout.columns, layout.columns)
        left = [(at, known[at]) for at in places if at < len(known)]
        came = [(at, now[at]) for at in places if at < len(now)]
        if (
            plan.doubled
            or _MOST_CHANGES * len(places) > len(now)
            or not all(_is_of_entity(found) for _, found in (*left, *came))
        ):
            return None
        update = _Update(plan, layout)
        for place, found in left:
            update.leave(place, found)
        return update.finished() if all(update.come(*each) for each in came) else None

    def _made(
        self, layout: Layout, limits: Limits | None, known: Mapping[Tags, Places]
    ) -> Plan:
        plan = Plan(node_id=self._node_id, layout=layout, limits=limits)
        for place, found in enumerate(self._found):
            if found is None:
                continue
            if found.callback is not None:
                _add_to_callback(plan, place, found.callback, found.attribute.meaning)
                continue
            if found.tags is None:
                _add_to_node(plan.node, place, found)
                continue
            places = plan.entities.get(found.tags)
            if places is None:
                places = _places(plan, found.tags, known.get(found.tags))
                plan.entities[found.tags] = places
            plan.doubled |= _place(places, found.attribute.meaning) != NOWHERE
            _add_to_entity(places, place, found.attribute.meaning)
        plan.entities = _sorted(plan.entities, known)
        return plan


class _Update:
    """A plan that takes over most of another one."""

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self.plan = replace(plan, layout=layout, entities=dict(plan.entities))
        self._own: set[Tags] = set()
        self._came: list[Tags] = []

    def leave(self, place: int, found: Found | None) -> None:
        """Forget where a number was."""
        if found is None or found.tags is None:
            return
        places = self._of(found.tags)
        if _place(places, found.attribute.meaning) == place:
            _add_to_entity(places, NOWHERE, found.attribute.meaning)

    def come(self, place: int, found: Found | None) -> bool:
        """Note where a number is. Returns False when there is one already, by another spelling of a name."""
        if found is None or found.tags is None:
            return True
        places = self._of(found.tags)
        doubled = _place(places, found.attribute.meaning) != NOWHERE
        _add_to_entity(places, place, found.attribute.meaning)
        return not doubled

    def finished(self) -> Plan:
        """The plan, without entities of which nothing is left, in the order in which they are shown."""
        entities = self.plan.entities
        for tags in self._own:
            if _is_empty(entities[tags]):
                del entities[tags]
        came = sorted((tags for tags in self._came if tags in entities), key=_order)
        if came:
            known = list(entities)[: -len(came)]
            order = _merged(known, came)
            self.plan.entities = {tags: entities[tags] for tags in order}
        return self.plan

    def _of(self, tags: Tags) -> Places:
        places = self.plan.entities.get(tags)
        if places is None:
            places = _places(self.plan, tags, None)
            self._came.append(tags)
        elif tags not in self._own:
            # What it used last may hold a number of a column that leaves now.
            places = replace(places, more=dict(places.more), last=None)
        self._own.add(tags)
        self.plan.entities[tags] = places
        return places


def _is_of_entity(found: Found | None) -> bool:
    return found is None or found.tags is not None


def _place(places: Places, meaning: Meaning) -> int:
    if meaning is Meaning.USAGE:
        return places.usage
    if meaning is Meaning.THROTTLE_TIME:
        return places.throttle_time
    return places.more.get(meaning, NOWHERE)


def _is_empty(places: Places) -> bool:
    numbers = (places.usage, places.throttle_time, *places.more.values())
    return all(place == NOWHERE for place in numbers)


def _sorted(
    entities: Mapping[Tags, Places], known: Mapping[Tags, Places]
) -> dict[Tags, Places]:
    """In the order in which they are shown, so that nobody has to sort them at each collection."""
    sorted_already = [(tags, entities[tags]) for tags in known if tags in entities]
    fresh = [item for item in entities.items() if item[0] not in known]
    return dict(sorted([*sorted_already, *sorted(fresh, key=_in_order)], key=_in_order))


def _merged(known: Sequence[Tags], fresh: Sequence[Tags]) -> Iterator[Tags]:
    """Both in one order, in which each of them is already; the known ones are many."""
    start = 0
    for tags in fresh:
        stop = bisect_left(known, _order(tags), lo=start, key=_order)
        yield from known[start:stop]
        yield tags
        start = stop
    yield from known[start:]


def _in_order(item: tuple[Tags, Places]) -> tuple[int, str, str]:
    return _order(item[0])


def _order(tags: Tags) -> tuple[int, str, str]:
    quota_type, user, client_id = tags
    return _TYPES.index(quota_type), user, client_id


def _places(plan: Plan, tags: Tags, known: Places | None) -> Places:
    return Places(
        entity=known.entity if known else _entity(plan, *tags),
        tags=tags,
        divisor=USAGE[tags[0]].divisor,
        standing=known.standing if known else standing_of(tags, plan.limits),
    )


def _entity(plan: Plan, quota_type: QuotaType, user: str, client_id: str) -> Entity:
    limits = plan.limits
    resolution = limit = burst = None
    if limits is not None:
        rules = limits.rules.get(quota_type, NO_RULES)
        resolution = rules.limit(user, client_id) or NO_RULE
    if resolution is not None and resolution.bound is not None:
        limit = resolution.bound / USAGE[quota_type].divisor
        if quota_type is QuotaType.CONTROLLER_MUTATION:
            burst = limit * _burst_seconds(plan)
    return Entity(
        broker=plan.node_id,
        quota_type=quota_type,
        user=user,
        client_id=client_id,
        resolution=resolution,
        limit=limit,
        burst_tokens=burst,
    )


def _burst_seconds(plan: Plan) -> float:
    # No Admin API tells the settings of a node that is only a controller; those of the brokers are the best guess.
    nodes = plan.limits.nodes if plan.limits else {}
    settings = nodes.get(plan.node_id) or next(iter(nodes.values()), NodeSettings())
    return settings.controller_quota_samples * settings.controller_quota_window_seconds


def _add_to_entity(places: Places, place: int, meaning: Meaning) -> None:
    if meaning is Meaning.USAGE:
        places.usage = place
    elif meaning is Meaning.THROTTLE_TIME:
        places.throttle_time = place
    elif place == NOWHERE:
        places.more.pop(meaning, None)
    else:
        places.more[meaning] = place
    if meaning in {Meaning.THROTTLE_TIME, Meaning.THROTTLED_SECONDS}:
        counted = Meaning.THROTTLED_SECONDS in places.more
        kind = places.tags[0]
        places.unthrottled = _unthrottled(kind, places.throttle_time, counted=counted)


def _unthrottled(
    quota_type: QuotaType, throttle_time: int, *, counted: bool = False
) -> float | None:
    """
    What is said by a throttle time of NaN, or by none.

    A node measures what is a column of its table: NaN after a minute without a throttle is 0. Of controller mutations that
    holds beside a counter of an embedded engine only: under KRaft the column is there, and never more than NaN.
    """
    measured = throttle_time != NOWHERE
    if quota_type is QuotaType.CONTROLLER_MUTATION:
        measured = measured and counted
    return 0.0 if measured else None


def _add_to_callback(
    plan: Plan, place: int, tags: CallbackTags, meaning: Meaning
) -> None:
    places = plan.callbacks.setdefault(tags, CallbackPlaces())
    if meaning is Meaning.USAGE:
        places.usage = place
    else:
        places.throttle_time = place
        places.unthrottled = _unthrottled(tags[0], place)


def _add_to_node(node: NodePlaces, place: int, found: Found) -> None:
    quota_type = found.attribute.quota_type
    match found.attribute.meaning:
        case Meaning.DELAY_QUEUE_SIZE if quota_type is not None:
            node.delay_queue_size[quota_type] = place
        case Meaning.EXEMPT_REQUEST_TIME:
            node.exempt_request_time = place
        case Meaning.ACTIVE_CONTROLLER:
            node.active_controller = place
        case Meaning.STARTED_AT:
            node.started_at = place
        case meaning:
            node.more.setdefault(meaning, {})[found.about] = place
