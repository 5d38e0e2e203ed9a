"""
An open loop in parts: what the brokers would hold between two requests is saved, and the next part goes on from there.

The parts together are the whole: windows, buckets, mutes and bursts after two parts are those after one (tests cut at random places). Lines
of a log come in the order of their completion, and of several brokers in none: the newest requests of each broker wait until `hold_ms`
passed after them, and are then decided in order. A request that comes later than that is decided at the time that its broker has reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.quotas.candidates import Candidate

from ..history.schema import HISTORY
from .compiled import Codes, Ints
from .frame import (
    KINDS,
    MUTATION,
    NEEDED,
    REQUEST,
    Frame,
    RequestColumns,
    array,
    entities_of,
    frame_of,
    in_order,
    ints,
    needed,
)
from .ledger import (
    ACTIVE_END,
    BURST_START,
    BURSTING,
    FIELDS,
    LATEST_MUTE,
    MUTE_END,
    MUTED_MS,
    MUTING,
    PAIR_FIELDS,
    ReplayLedger,
    booked_of,
    new_ledger,
)
from .mutations import IDLE_MS, Buckets, Spreads, decide, new_state
from .open_loop import enter, events_of, limits_of, sensors_of
from .plan import CandidateRules, ReplayPlan, ReplaySettings, plan_of
from .rate import UNCHECKED, Events, Measurements, SensorWindows, empty_windows, observe
from .results import RESULTS, results_of

HOLD_MS: Final = 10_000
"""How long the newest requests of a broker wait for earlier ones."""
_UNCLEAR_MS: Final = 24 * IDLE_MS
"""After how long without a request an entity is forgotten that was throttled at last."""
_Key: TypeAlias = tuple[Any, ...]
_WAITING: Final = pa.schema([HISTORY.field(name) for name in NEEDED])
_LATER_COLUMNS: list[Any] = [
    ("place", pa.int64()),
    ("time", pa.int64()),
    ("value", pa.float64()),
]
_LATER: Final = pa.schema(_LATER_COLUMNS)


class Rows:
    """Arrays with a row for each key, which starts with zeros."""

    def __init__(self, keys: Sequence[_Key] = (), **columns: NDArray[Any]) -> None:
        self.places = {key: place for place, key in enumerate(keys)}
        self.columns: dict[str, NDArray[Any]] = columns

    def at(self, keys: Sequence[_Key], **kinds: tuple[Any, int]) -> Ints:
        """The places of keys, new ones included; `kinds` names the columns, with the type and the width of each."""
        known = self.places
        places = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
        for name, (kind, width) in kinds.items():
            held = self.columns.get(name, np.zeros((0, width), kind))
            more = np.zeros((len(known) - len(held), width), kind)
            self.columns[name] = np.concatenate([held, more]) if len(more) else held
        return places

    def keep(self, kept: NDArray[np.bool_]) -> Ints:
        """Drop the rows that are not kept; return by former place the new one."""
        keys = [key for key, keeps in zip(self.places, kept, strict=True) if keeps]
        self.places = {key: place for place, key in enumerate(keys)}
        self.columns = {name: column[kept] for name, column in self.columns.items()}
        return np.cumsum(kept) - 1

    def table(self) -> pa.Table:
        """Keys and columns."""
        keys = list(zip(*self.places, strict=True))
        held = {f"key{number}": pa.array(part) for number, part in enumerate(keys)}
        for name, column in self.columns.items():
            flat = pa.array(column.ravel())
            held[name] = pa.FixedSizeListArray.from_arrays(flat, column.shape[1])
        return pa.table(held) if keys else pa.table({})

    @classmethod
    def of(cls, table: pa.Table) -> Rows:
        """What `table` returned."""
        names = table.column_names
        keys = [table[name].to_pylist() for name in names if name.startswith("key")]
        columns = {}
        for name in names[len(keys) :]:
            lists: Any = table[name].combine_chunks()
            flat = lists.flatten().to_numpy(zero_copy_only=False)
            columns[name] = np.array(flat).reshape(-1, lists.type.list_size)
        return cls(list(zip(*keys, strict=True)), **columns)


@dataclass(slots=True)
class Carried:
    """What is between two parts."""

    requests: pa.Table = field(default_factory=_WAITING.empty_table)
    """Those that wait, `frame.NEEDED`."""
    brokers: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By broker: its newest request, when a request of it came last, and until when its requests are decided; epoch ms."""
    sensors: dict[str, Rows] = field(default_factory=dict)
    """By slot of measurements (`plan.ReplayPlan.slots`)."""
    later: dict[str, pa.Table] = field(default_factory=dict)
    """By slot: network time that is still to be charged."""
    buckets: Rows = field(default_factory=Rows)
    spreads: Rows = field(default_factory=Rows)
    pairs: Rows = field(default_factory=Rows)
    mutes: Rows = field(default_factory=Rows)
    """By connection, of those that some candidate mutes."""

    def saved(self) -> pa.Table:
        """All of it as rows of `name` and `content`."""
        names = list(self.brokers)
        numbers = np.array(list(self.brokers.values()), np.int64).reshape(-1, 3)
        parts: dict[str, pa.Table] = {
            "requests": self.requests,
            "brokers": Rows([(name,) for name in names], times=numbers).table(),
            **{f"sensors {slot}": rows.table() for slot, rows in self.sensors.items()},
            **{f"later {slot}": table for slot, table in self.later.items()},
        }
        for name in ("buckets", "spreads", "pairs", "mutes"):
            parts[name] = getattr(self, name).table()
        contents = []
        for table in parts.values():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            contents.append(sink.getvalue().to_pybytes())
        return pa.table({"name": list(parts), "content": pa.array(contents, pa.large_binary())})  # fmt: skip

    @classmethod
    def loaded(cls, saved: pa.Table) -> Carried:
        """What `saved` returned."""
        carried = cls()
        for row in saved.to_pylist():
            table = pa.ipc.open_stream(row["content"]).read_all()
            name, _, slot = row["name"].partition(" ")
            if name == "requests":
                carried.requests = table
            elif name == "later":
                carried.later[slot] = table
            elif name == "sensors":
                carried.sensors[slot] = Rows.of(table)
            elif name == "brokers":
                rows = Rows.of(table)
                times = rows.columns["times"].tolist() if rows.places else []
                carried.brokers = {key[0]: tuple(each) for key, each in zip(rows.places, times, strict=True)}  # fmt: skip
            else:
                setattr(carried, name, Rows.of(table))
        return carried


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a part of the requests did."""

    results: pa.Table
    """`results.RESULTS` of the requests that were decided, by broker: of several parts the sums, and of what is the longest the largest."""
    decided: int
    waiting: int
    late: int
    """Requests that came after their broker's time was over."""
    until_ms: int
    """When the last one was decided, epoch ms; 0 for none."""


def fingerprint(candidates: Sequence[Candidate]) -> str:
    """Names rules: what is carried under some says nothing under others."""
    content = repr([(each.name, sorted((str(entity), sorted(keys.items())) for entity, keys in each.quotas.items()), each.windows, each.controller_windows, each.mutation_policy) for each in candidates])  # fmt: skip
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def proceed(
    carried: Carried,
    rows: pa.Table,
    rules: CandidateRules,
    settings: ReplaySettings,
    *,
    now_ms: int,
    hold_ms: int = HOLD_MS,
) -> Part:
    """
    Decide what the waiting requests and these let be decided, and carry on.

    Args:
        carried: from the part before; changed.
        rows: of a history, each once, and all of each user, or of all users that share a limit.
        rules: the same for all parts.
        settings: as of `replay`; results are by broker.
        now_ms: the time; a broker of which nothing came for `hold_ms` waits no longer.
        hold_ms: how long requests wait for earlier ones; 0 decides all of them at once.

    """
    new, late = _in_time(carried, needed(rows).cast(_WAITING), now_ms)
    table = pa.concat_tables([carried.requests, new])
    entities, codes = entities_of(table)
    order = in_order(table, np.zeros(len(table), np.int64))
    table, codes = table.take(array(order)), codes[order]
    whole = frame_of(table, entities, codes, np.zeros(len(table), np.int64))
    cuts = _cuts(carried, whole, now_ms, hold_ms)
    due = whole.requests.times < cuts[whole.pair_brokers[whole.requests.pairs]]
    carried.requests = table.filter(pa.array(~due))
    if not due.any():
        return Part(results=RESULTS.empty_table(), decided=0, waiting=len(table), late=late, until_ms=0)  # fmt: skip
    plan = plan_of(_only(whole, due), rules, rules.resolve(entities), replace(settings, per_broker=True))  # fmt: skip
    limits, hashes = limits_of(plan), ints(table, "connection")[due]
    with_buckets = new_state(plan)
    keys = list(_bucket_keys(plan))
    _fill(carried, keys, with_buckets[1:])
    outcomes = decide(plan, with_buckets)
    _keep(carried, keys, with_buckets[1:], max(each.controller_windows.samples for each in plan.candidates))  # fmt: skip
    books = _Books(carried, plan, limits.ranks, hashes)
    ledger = books.opened()
    enter(plan, limits, outcomes, _measured(carried, plan, cuts), ledger)
    closed = ledger._replace(cells=ledger.cells.copy(), bursts=np.zeros_like(ledger.bursts))  # fmt: skip
    results = results_of(plan, booked_of(closed, plan.sizes(), limits.ranks), of_active=True)  # fmt: skip
    books.kept(ledger, closed.cells, cuts)
    _forget(carried, plan)
    times = plan.frame.requests.times
    return Part(
        results=results,
        decided=len(times),
        waiting=len(carried.requests),
        late=late,
        until_ms=int(times.max(initial=0)),
    )


def _in_time(carried: Carried, rows: pa.Table, now_ms: int) -> tuple[pa.Table, int]:
    """The rows, none before what its broker has reached; and how many were."""
    if not len(rows):
        return rows, 0
    names = pc.unique(rows["broker"].cast(pa.string()))
    brokers: Any = pc.index_in(rows["broker"].cast(pa.string()), names)
    known: list[Any] = names.to_pylist()
    reached = [carried.brokers.get(name, (0, 0, 0))[2] for name in known]
    least = np.array(reached, np.int64)[brokers.to_numpy()]
    late = int((rows["timestamp"].to_numpy() < least).sum())
    if late:
        for name in ("timestamp", "completed", "mutation_timestamp"):
            times = pc.max_element_wise(rows[name], pa.array(least), skip_nulls=False)
            rows = rows.set_column(rows.column_names.index(name), _WAITING.field(name), times)  # fmt: skip
    newest = rows.group_by("broker").aggregate([("timestamp", "max")])
    for row in newest.to_pylist():
        last, _, until = carried.brokers.get(row["broker"], (0, 0, 0))
        carried.brokers[row["broker"]] = max(last, row["timestamp_max"]), now_ms, until
    return rows, late


def _cuts(carried: Carried, whole: Frame, now_ms: int, hold_ms: int) -> Ints:
    """
    By broker of the frame: until when its requests are decided now.

    Brokers that are not behind the newest by more than `hold_ms` are cut at one time, and where no mutation lies between its charge by the
    controller and its decision: the bucket is one for all.
    """
    silent = {name: now_ms - came >= hold_ms for name, (_, came, _) in carried.brokers.items()}  # fmt: skip
    newest = max((last for last, _, _ in carried.brokers.values()), default=0)
    common = min((last for name, (last, _, _) in carried.brokers.items() if last >= newest - hold_ms and not silent[name]), default=newest)  # fmt: skip
    if hold_ms == 0 or all(silent.values()):
        common, hold_ms = newest + 1, 0
    wanted = {}
    for name, (last, _, before) in carried.brokers.items():
        with_others = silent[name] or last >= newest - hold_ms
        wanted[name] = max(before, (common if with_others else last) - hold_ms)
    names: list[Any] = whole.brokers.to_pylist()
    cuts = np.array([wanted[name] for name in names], np.int64)
    if hold_ms:
        cuts = _between_mutations(whole, cuts, np.array([carried.brokers[name][2] for name in names], np.int64), hold_ms)  # fmt: skip
    for name, cut in zip(names, cuts.tolist(), strict=True):
        last, came, _ = carried.brokers[name]
        carried.brokers[name] = last, came, cut
    return cuts


def _between_mutations(whole: Frame, cuts: Ints, before: Ints, hold_ms: int) -> Ints:
    """Earlier cuts of all brokers, where a mutation is charged before its cut and decided after it, or waits on a broker that is behind the others."""
    mutating = np.flatnonzero(whole.requests.kinds == MUTATION)
    decided = whole.requests.times[mutating]
    charged = np.minimum(whole.mutation_times[mutating], decided)
    brokers = whole.pair_brokers[whole.requests.pairs[mutating]]
    least = np.maximum(before, cuts - hold_ms)
    while True:
        waits = decided >= cuts[brokers]
        split = waits & (charged < cuts[brokers])
        behind = waits & (cuts[brokers] < cuts.max(initial=0))
        lower = cuts
        if split.any():
            lower = np.minimum(lower, np.maximum(least, charged[split].min()))
        if behind.any():
            lower = np.minimum(lower, np.maximum(before, charged[behind].min()))
        if (lower == cuts).all():
            return cuts
        cuts = lower


def _only(frame: Frame, due: NDArray[np.bool_]) -> Frame:
    columns: Any = (np.ascontiguousarray(column[due]) for column in frame.requests)
    return replace(
        frame,
        requests=RequestColumns(*columns),
        groups=frame.groups[due],
        networks=frame.networks[due],
        completed=frame.completed[due],
        throttles=frame.throttles[due],
        mutation_times=frame.mutation_times[due],
        charged=frame.charged[due],
    )


def _measured(carried: Carried, plan: ReplayPlan, cuts: Ints) -> Measurements:
    """What each request measures, as in a whole open loop, with the windows that were carried."""
    frame, count = plan.frame, len(plan.frame.requests.times)
    rates = np.zeros((max(1, len(plan.slots)), count), np.float64)
    spans = np.zeros((max(1, len(plan.slots)), count), np.int64)
    brokers: list[Any] = frame.brokers.to_pylist()
    for (kind, number, windows), slot in plan.slots.items():
        sensors = sensors_of(plan, kind, number, slot)
        chosen, first = np.unique(sensors, return_index=True)
        first = first[chosen >= 0]
        resolved = plan.resolved[number]
        names = [resolved.names[tag] for tag in resolved.tags[frame.pair_entities[first]].tolist()]  # fmt: skip
        at_brokers = frame.pair_brokers[first]
        keys = [(*name, brokers[broker]) for name, broker in zip(names, at_brokers.tolist(), strict=True)]  # fmt: skip
        held = carried.sensors.setdefault(str(slot), Rows())
        width = windows[0] + 1
        places = held.at(keys, starts=(np.int64, width), lasts=(np.int64, width), sums=(np.float64, width), currents=(np.int32, 1), sizes=(np.int32, 1))  # fmt: skip
        # numbered as they are held from here on, and only those that occur
        local = np.full(frame.pairs + 1, -1, np.int32)
        local[chosen[chosen >= 0]] = np.arange(len(first), dtype=np.int32)
        rows, events = events_of(frame, local[sensors], kind)
        state = SensorWindows(**{name: np.ascontiguousarray(held.columns[name][places]).ravel() for name in SensorWindows._fields}) if len(places) else empty_windows(0, windows[0])  # fmt: skip
        if kind == REQUEST:
            rows, events = _with_later(carried, str(slot), rows, events, places, cuts[at_brokers])  # fmt: skip
        measured = observe(events, len(first), *windows, work=count, windows=state)
        for name in SensorWindows._fields:
            column = held.columns[name]
            column[places] = getattr(state, name).reshape(len(places), column.shape[1])
        checked = events.treatments != UNCHECKED
        rates[slot][rows[checked]] = measured.rates[checked]
        spans[slot][rows[checked]] = measured.spans[checked]
    return Measurements(rates.ravel(), spans.ravel())


def _with_later(
    carried: Carried,
    slot: str,
    rows: Ints,
    events: Events,
    places: Ints,
    cuts: Ints,
) -> tuple[Ints, Events]:
    """The events up to the cuts, with the network time that parts before had left to be charged; what comes after them is left again."""
    before = carried.later.get(slot, _LATER.empty_table())
    held, numbers = before["place"].to_numpy(), np.full(len(places), -1, np.int64)
    local = np.full(max(held.max(initial=-1), places.max(initial=-1)) + 1, -1, np.int64)
    local[places] = np.arange(len(places))
    numbers = local[held]
    here = numbers >= 0
    sensors = np.concatenate([events.sensors, numbers[here]]).astype(np.int32)
    times = np.concatenate([events.times, before["time"].to_numpy()[here]])
    values = np.concatenate([events.values, before["value"].to_numpy()[here]])
    treatments = np.concatenate([events.treatments, np.full(here.sum(), UNCHECKED, np.int8)])  # fmt: skip
    # of one time: what is checked, then what was left, then what is new
    turns = np.where(treatments != UNCHECKED, 0, 2)
    turns[len(events.times) :] = 1
    due = (treatments != UNCHECKED) | (times < cuts[sensors])
    left = pa.table([places[sensors[~due]], times[~due], values[~due]], schema=_LATER)
    carried.later[slot] = pa.concat_tables([before.filter(pa.array(~here)), left])
    order = np.flatnonzero(due)
    order = order[np.lexsort((turns[order], times[order]))]
    rows = np.concatenate([rows, np.full(here.sum(), -1, np.int64)])
    ordered = Events(sensors[order], times[order], values[order], treatments[order])
    return rows[order], ordered


def _bucket_keys(plan: ReplayPlan) -> Iterator[_Key]:
    """The candidate and the tags of each bucket, in the order of `mutations.new_state`."""
    for candidate in range(len(plan.candidates)):
        resolved = plan.resolution(candidate, MUTATION)
        for tag in np.unique(resolved.tags[resolved.tags >= 0]).tolist():
            yield (candidate, *resolved.names[tag])


def _fill(carried: Carried, keys: list[_Key], state: tuple[Buckets, Spreads]) -> None:
    buckets, spreads = state
    for number, key in enumerate(keys):
        if (place := carried.buckets.places.get(key)) is not None:
            for name in ("tokens", "touched", "charged"):
                getattr(buckets, name)[number] = carried.buckets.columns[name][place, 0]
        if (place := carried.spreads.places.get(key)) is not None:
            base, samples = spreads.bases[number], spreads.samples[number]
            held = carried.spreads.columns["windows"][place]
            spreads.windows[base : base + samples] = held[:samples]
            spreads.currents[number] = carried.spreads.columns["currents"][place, 0]


def _keep(
    carried: Carried, keys: list[_Key], state: tuple[Buckets, Spreads], width: int
) -> None:
    buckets, spreads = state
    used = np.flatnonzero(buckets.charged >= 0).tolist()
    places = carried.buckets.at([keys[number] for number in used], tokens=(np.float64, 1), touched=(np.int64, 1), charged=(np.int64, 1))  # fmt: skip
    for name in carried.buckets.columns:
        carried.buckets.columns[name][places, 0] = getattr(buckets, name)[used]
    used = np.flatnonzero(spreads.currents > 0).tolist()
    places = carried.spreads.at([keys[number] for number in used], windows=(np.float64, width), currents=(np.int64, 1))  # fmt: skip
    for number, place in zip(used, places.tolist(), strict=True):
        base, samples = spreads.bases[number], spreads.samples[number]
        carried.spreads.columns["windows"][place, :samples] = spreads.windows[base : base + samples]  # fmt: skip
        carried.spreads.columns["currents"][place, 0] = spreads.currents[number]


class _Books:
    """The ledger of a part, which begins with the mutes and bursts that were carried."""

    def __init__(
        self, carried: Carried, plan: ReplayPlan, ranks: Codes, hashes: Ints
    ) -> None:
        frame = plan.frame
        self._carried, self._plan, self._ranks = carried, plan, ranks
        self._present = np.unique(frame.requests.pairs)
        names, brokers = frame.entities.names(), frame.brokers.to_pylist()
        numbers = self._present.tolist()
        keys: list[_Key] = [(*names[frame.pair_entities[pair]], brokers[frame.pair_brokers[pair]]) for pair in numbers]  # fmt: skip
        self._key_of = dict(zip(numbers, keys, strict=True))
        count = len(ranks)
        self._places = carried.pairs.at(keys, times=(np.int64, 2), bursts=(np.int8, count), cells=(np.int64, count * KINDS * 3))  # fmt: skip
        self._connections, first = np.unique(frame.requests.connections, return_index=True)  # fmt: skip
        self._hashes, self._pairs = hashes[first], frame.requests.pairs[first]

    def opened(self) -> ReplayLedger:
        """The ledger, with nothing counted yet."""
        sizes, ranks, present = self._plan.sizes(), self._ranks, self._present
        ledger, count = new_ledger(sizes), len(self._ranks)
        held = {name: column[self._places] for name, column in self._carried.pairs.columns.items()}  # fmt: skip
        pairs = ledger.pairs.reshape(-1, PAIR_FIELDS)
        pairs[present, ACTIVE_END], pairs[present, LATEST_MUTE] = held["times"].T
        pairs[present, MUTING] = count
        pairs[present, BURSTING] = np.where(held["bursts"].any(axis=1), count, 0)
        ledger.bursts.reshape(-1, count)[present] = held["bursts"][:, ranks]
        cells = ledger.cells.reshape(-1, count, KINDS, FIELDS)
        of_cells = held["cells"].reshape(-1, count, KINDS, 3)[:, ranks]
        for number, name in enumerate((MUTE_END, BURST_START, MUTED_MS)):
            cells[present, ..., name] = of_cells[..., number]
        mutes = self._carried.mutes
        muted = np.isin(self._hashes, [key[0] for key in mutes.places])
        for number in np.flatnonzero(muted).tolist():
            place = mutes.places.get(self._key(number))
            if place is not None:
                connection = self._connections[number]
                ledger.mute_ends.reshape(-1, count)[connection] = mutes.columns["ends"][place, ranks]  # fmt: skip
                ledger.mute_kinds.reshape(-1, count)[connection] = mutes.columns["kinds"][place, ranks]  # fmt: skip
                ledger.latest[connection] = mutes.columns["latest"][place, 0]
                ledger.muting[connection] = count
        return ledger

    def kept(self, ledger: ReplayLedger, closed: Ints, cuts: Ints) -> None:
        """Carry on what the ledger holds; `closed` are its cells without the mutes that reach beyond an entity's activity."""
        ranks, present, columns = self._ranks, self._present, self._carried.pairs.columns  # fmt: skip
        count, by_candidate = len(ranks), np.argsort(ranks)
        pairs = ledger.pairs.reshape(-1, PAIR_FIELDS)
        columns["times"][self._places] = pairs[present][:, [ACTIVE_END, LATEST_MUTE]]
        bursts = ledger.bursts.reshape(-1, count)
        columns["bursts"][self._places] = bursts[present][:, by_candidate]
        cells = ledger.cells.reshape(-1, count, KINDS, FIELDS)[present][:, by_candidate]
        shut = closed.reshape(-1, count, KINDS, FIELDS)[present][:, by_candidate]
        beyond = cells[..., MUTE_END] - shut[..., MUTE_END]
        held = np.stack([cells[..., MUTE_END], cells[..., BURST_START], beyond], -1)
        columns["cells"][self._places] = held.reshape(len(present), -1)
        self._keep_mutes(ledger, by_candidate, cuts)

    def _keep_mutes(self, ledger: ReplayLedger, by_candidate: Ints, cuts: Ints) -> None:
        mutes, count = self._carried.mutes, len(by_candidate)
        if mutes.places:
            reached = {name: until for name, (_, _, until) in self._carried.brokers.items()}  # fmt: skip
            until = np.array([reached[key[-1]] for key in mutes.places], np.int64)
            mutes.keep(mutes.columns["latest"][:, 0] > until)
        latest = ledger.latest[self._connections]
        at = cuts[self._plan.frame.pair_brokers[self._pairs]]
        muted = np.flatnonzero(latest > at)
        keys = [self._key(number) for number in muted.tolist()]
        places = mutes.at(keys, ends=(np.int64, count), kinds=(np.int8, count), latest=(np.int64, 1))  # fmt: skip
        chosen = self._connections[muted]
        mutes.columns["ends"][places] = ledger.mute_ends.reshape(-1, count)[chosen][:, by_candidate]  # fmt: skip
        mutes.columns["kinds"][places] = ledger.mute_kinds.reshape(-1, count)[chosen][:, by_candidate]  # fmt: skip
        mutes.columns["latest"][places, 0] = latest[muted]

    def _key(self, number: int) -> _Key:
        return (int(self._hashes[number]), *self._key_of[int(self._pairs[number])])


def _forget(carried: Carried, plan: ReplayPlan) -> None:
    """Drop what has no effect any more: sensors and buckets that a broker would remove, too, and clients that came to rest."""
    reached = {name: until for name, (_, _, until) in carried.brokers.items()}
    for (_, _, (samples, window_ms)), slot in plan.slots.items():
        held = carried.sensors[str(slot)]
        if held.places:
            until = np.array([reached[key[-1]] for key in held.places], np.int64)
            idle_ms = max(IDLE_MS, (samples + 2) * window_ms)
            kept = until - held.columns["lasts"].max(axis=1) <= idle_ms
            if (later := carried.later.get(str(slot))) is not None and len(later):
                kept[later["place"].to_numpy()] = True
                moved = (np.cumsum(kept) - 1)[later["place"].to_numpy()]
                carried.later[str(slot)] = later.set_column(0, _LATER.field(0), pa.array(moved))  # fmt: skip
            if not kept.all():
                held.keep(kept)
    if carried.pairs.places:
        until = np.array([reached[key[-1]] for key in carried.pairs.places], np.int64)
        columns = carried.pairs.columns
        cells = columns["cells"].reshape(len(until), -1, 3)
        clear = ~columns["bursts"].any(axis=1) & (cells[..., 2] == 0).all(axis=1)
        carried.pairs.keep(until - columns["times"].max(axis=1) <= np.where(clear, IDLE_MS, _UNCLEAR_MS))  # fmt: skip
    if carried.buckets.places:
        last = max(reached.values())
        carried.buckets.keep(last - carried.buckets.columns["charged"][:, 0] <= 2 * IDLE_MS)  # fmt: skip
