"""
An open loop in parts: what the brokers would hold between two requests is saved, and the next part goes on from there.

The parts together are the whole: windows, buckets, mutes and bursts after two parts are those after one (tests cut at random places). Lines
of a log come in the order of their completion, and of several brokers in none: the newest requests of each broker wait until `hold_ms`
passed after them, and are then decided in order. A request that comes later than that is decided at the time that its broker has reached.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.quotas.candidates import Candidate

from ..history.schema import HISTORY
from .compiled import Codes, Ints
from .frame import (
    MUTATION,
    NEEDED,
    NO_KIND,
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
    ACTIVE_MS,
    BURST_START,
    FIELDS,
    LATEST_MUTE,
    MUTE_END,
    MUTED_MS,
    PAIR_FIELDS,
    ReplayLedger,
    booked_of,
    new_ledger,
)
from .mutations import IDLE_MS, MutationOutcomes, decide, new_state
from .open_loop import enter, events_of, limits_of, sensors_of
from .plan import CandidateRules, ReplayPlan, ReplaySettings, plan_of
from .rate import UNCHECKED, Measurements, SensorWindows, empty_windows, observe
from .results import RESULTS, results_of

HOLD_MS: Final = 10_000
"""How long the newest requests of a broker wait for earlier ones."""
_UNCLEAR_MS: Final = 24 * IDLE_MS
"""After how long without a request an entity is forgotten that was throttled at last."""
_OF_CELLS: Final = [MUTED_MS, MUTE_END, BURST_START]
"""What a part leaves to the next one of the cells of a pair: of a mute only what is beyond the pair's activity."""
_Key: TypeAlias = tuple[Any, ...]
"""What a row is of; the last part is its broker, but for the buckets of mutations."""
_Arrays: TypeAlias = Mapping[str, NDArray[Any]]
"""Arrays of a kernel, with a row for each number that it gives a key."""
_WAITING: Final = pa.schema([HISTORY.field(name) for name in NEEDED])


class Rows:
    """What kernels hold of keys between two parts: of each key a row of each of some arrays."""

    def __init__(self) -> None:
        self.places: dict[_Key, int] = {}
        self.columns: dict[str, NDArray[Any]] = {}

    def fill(self, arrays: _Arrays, numbers: Ints | Codes, keys: Sequence[_Key]) -> None:
        """Write what is held of some keys into the rows of their numbers."""
        places = np.array([self.places.get(key, -1) for key in keys], np.int64)
        held = places >= 0
        for name, column in self.columns.items():
            arrays[name][numbers[held]] = column[places[held]]

    def at(self, keys: Iterable[_Key]) -> Ints:
        """The places of keys; a new one has zeros."""
        known = self.places
        places = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
        for name, column in self.columns.items():
            if len(column) < len(known):
                more = len(known) - len(column)
                self.columns[name] = np.pad(column, ((0, more), (0, 0)))
        return places

    def hold(self, arrays: _Arrays, numbers: Ints | Codes, keys: Sequence[_Key]) -> None:
        """Hold the rows of some numbers."""
        places = self.at(keys)
        for name, rows in arrays.items():
            if name not in self.columns:
                shape = len(self.places), rows.shape[1]
                self.columns[name] = np.zeros(shape, rows.dtype)
            self.columns[name][places] = rows[numbers]

    def forget(self, kept: NDArray[np.bool_]) -> None:
        """Drop the other rows."""
        if not kept.all():
            keys = [key for key, keeps in zip(self.places, kept, strict=True) if keeps]
            self.places = {key: place for place, key in enumerate(keys)}
            self.columns = {name: column[kept] for name, column in self.columns.items()}


@dataclass(slots=True)
class Carried:
    """What is between two parts."""

    requests: pa.Table = field(default_factory=_WAITING.empty_table)
    """Those that wait, `frame.NEEDED`."""
    owed: pa.Table = field(default_factory=_WAITING.empty_table)
    """Those that are decided, and whose network time is charged when their response has left."""
    ranks: Codes | None = None
    """The order of the candidates by their limits, as it was in the first part."""
    rows: defaultdict[str, Rows] = field(default_factory=lambda: defaultdict(Rows))
    """
    Of `buckets`, `pairs`, the `connections` that some candidate mutes, `sensors` by slot (`plan.ReplayPlan.slots`), and `brokers`.

    Of a broker `times`, in epoch ms: its newest request, when a request of it came last, and until when its requests are decided.
    """

    def saved(self) -> pa.Table:
        """All of it in a row of lists."""
        lists: dict[str, Any] = {
            "requests": self.requests.to_struct_array().combine_chunks(),
            "owed": self.owed.to_struct_array().combine_chunks(),
            "ranks": array([] if self.ranks is None else self.ranks),
        }
        for name, rows in self.rows.items():
            for number, part in enumerate(zip(*rows.places, strict=True)):
                lists[f"{name} key{number}"] = array(part)
            if rows.places:
                for of, column in rows.columns.items():
                    lists[f"{name} {of}"] = array(column.ravel())
        for name, each in lists.items():
            ends: Any = [0, len(each)]
            lists[name] = pa.LargeListArray.from_arrays(ends, each)
        return pa.table(lists)

    @classmethod
    def loaded(cls, saved: pa.Table) -> Carried:
        """What `saved` returned."""
        lists: dict[str, Any] = {}
        for name in saved.column_names:
            lists[name] = saved[name][0].values
        carried = cls(
            requests=pa.Table.from_struct_array(lists.pop("requests")),
            owed=pa.Table.from_struct_array(lists.pop("owed")),
        )
        ranks = np.array(lists.pop("ranks"), np.int32)
        carried.ranks = ranks if len(ranks) else None
        keys = defaultdict[str, list[Any]](list)
        for title, values in lists.items():
            name, _, of = title.rpartition(" ")
            if of.startswith("key"):
                keys[name].append(values.to_pylist())
            else:
                column = np.array(values).reshape(len(keys[name][0]), -1)
                carried.rows[name].columns[of] = column
        for name, parts in keys.items():
            places = carried.rows[name].places
            places |= {key: place for place, key in enumerate(zip(*parts, strict=True))}
        return carried

    def until(self, brokers: Iterable[str]) -> Ints:
        """Until when the requests of each broker are decided."""
        held = self.rows["brokers"]
        times = held.columns["times"][:, 2].tolist()
        until = {name: time for (name,), time in zip(held.places, times, strict=True)}
        return np.array([until[name] for name in brokers], np.int64)


@dataclass(slots=True, kw_only=True)
class Part:
    """What a part of the requests did."""

    results: pa.Table = field(default_factory=RESULTS.empty_table)
    """`results.RESULTS` of the requests that were decided, by broker: of several parts the sums, and of what is the longest the largest."""
    decided: int = 0
    waiting: int = 0
    """Requests that are decided later, when earlier ones cannot come any more."""
    late: int = 0
    """Requests that came after that: they were decided at the time that their broker had reached."""
    until_ms: int = 0
    """When the last one was decided, epoch ms; 0 for none."""


def fingerprint(candidates: Sequence[Candidate]) -> str:
    """Names rules: what is carried under some says nothing under others."""
    content = [
        (
            each.name,
            sorted((str(rule), sorted(keys.items())) for rule, keys in each.quotas.items()),
            each.windows,
            each.controller_windows,
            each.mutation_policy,
        )
        for each in candidates
    ]  # fmt: skip
    encoded = repr(content).encode("utf-8", "surrogatepass")
    return blake2b(encoded, digest_size=8).hexdigest()


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
    table = pa.concat_tables([carried.owed, carried.requests, new])
    groups = np.zeros(len(table), np.int64)
    order = in_order(table, groups)
    table, before = table.take(array(order)), order < len(carried.owed)
    entities, codes = entities_of(table)
    whole = frame_of(table, entities, codes, groups)
    cuts = _cuts(carried, whole, now_ms, hold_ms)
    until = cuts[whole.pair_brokers[whole.requests.pairs]]
    due = ~before & (whole.requests.times < until)
    carried.requests = table.filter(array(~before & ~due))
    waiting = len(carried.requests)
    if not due.any():
        return Part(waiting=waiting, late=late)
    owing = (before | due) & (whole.networks > 0) & (whole.completed >= until)
    carried.owed = table.filter(array(owing))
    settings = replace(settings, per_broker=True)
    plan = plan_of(_only(whole, due), rules, rules.resolve(entities), settings)
    outcomes = _mutations(carried, plan)
    measured = _measured(carried, plan, whole, due, (before | due) & ~owing)
    results = _entered(carried, plan, outcomes, measured, ints(table, "connection")[due])
    return Part(
        results=results,
        decided=int(due.sum()),
        waiting=waiting,
        late=late,
        until_ms=int(plan.frame.requests.times.max()),
    )


def _in_time(carried: Carried, rows: pa.Table, now_ms: int) -> tuple[pa.Table, int]:
    """The rows, none before what its broker has reached; and how many were."""
    held = carried.rows["brokers"]
    held.columns.setdefault("times", np.zeros((0, 3), np.int64))
    if not len(rows):
        return rows, 0
    names = rows["broker"].combine_chunks().dictionary_encode()
    places = held.at((name,) for name in names.dictionary.to_pylist())
    places = places[names.indices.to_numpy()]
    newest, came, until = held.columns["times"].T
    late = int((rows["timestamp"].to_numpy() < until[places]).sum())
    if late:
        least = array(until[places])
        for name in ("timestamp", "completed", "mutation_timestamp"):
            later = pc.max_element_wise(rows[name], least, skip_nulls=False)
            place = rows.column_names.index(name)
            rows = rows.set_column(place, _WAITING.field(name), later)
    np.maximum.at(newest, places, rows["timestamp"].to_numpy())
    came[places] = now_ms
    return rows, late


def _cuts(carried: Carried, whole: Frame, now_ms: int, hold_ms: int) -> Ints:
    """
    By broker of the frame: until when its requests are decided now.

    Brokers that are not behind the newest by more than `hold_ms` are cut at one time, and where no mutation lies between its charge by the
    controller and its decision: the bucket is one for all.
    """
    held = carried.rows["brokers"]
    at = held.at((name,) for name in whole.brokers.to_pylist())
    newest, came, until = held.columns["times"].T
    last = newest.max(initial=0)
    silent, near = now_ms - came >= hold_ms, newest >= last - hold_ms
    common = newest[near & ~silent].min(initial=last)
    if hold_ms == 0 or silent.all():
        common, hold_ms = last + 1, 0
    wanted = np.where(near | silent, common, newest) - hold_ms
    cuts: Ints = np.maximum(until, wanted)[at]
    if hold_ms:
        cuts = _between_mutations(whole, cuts, until[at], hold_ms)
    until[at] = cuts
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
    names = "groups", "networks", "completed", "throttles", "mutation_times", "charged"
    chosen: dict[str, Any] = {name: getattr(frame, name)[due] for name in names}
    columns: Any = (column[due] for column in frame.requests)
    requests = RequestColumns(*columns)
    return replace(frame, requests=requests, **chosen)


def _mutations(carried: Carried, plan: ReplayPlan) -> MutationOutcomes:
    """What the mutation quotas decide, with the buckets that were carried."""
    numbers, buckets, spreads = new_state(plan)
    keys = list(_bucket_keys(plan))
    if not keys:
        return decide(plan, (numbers, buckets, spreads))
    held, every = carried.rows["buckets"], np.arange(len(keys))
    state = _by_row(len(keys), buckets, "tokens", "touched", "charged")
    state |= _by_row(len(keys), spreads, "windows", "currents")
    held.fill(state, every, keys)
    outcomes = decide(plan, (numbers, buckets, spreads))
    held.hold(state, every, keys)
    last = carried.rows["brokers"].columns["times"][:, 2].max()
    charged = held.columns["charged"].max(axis=1) >= last - 2 * IDLE_MS
    held.forget(charged | held.columns["windows"].any(axis=1))
    return outcomes


def _bucket_keys(plan: ReplayPlan) -> Iterator[_Key]:
    """The candidate and the tags of each bucket, in the order of `mutations.new_state`."""
    for candidate in range(len(plan.candidates)):
        resolved = plan.resolution(candidate, MUTATION)
        for tag in np.unique(resolved.tags[resolved.tags >= 0]).tolist():
            yield (candidate, *resolved.names[tag])


def _by_row(count: int, state: NamedTuple, *names: str) -> dict[str, NDArray[Any]]:
    """Flat arrays of a kernel by row, as views: what is written to them is written to the kernel's."""
    return {name: getattr(state, name).reshape(count, -1) for name in names}


def _measured(
    carried: Carried,
    plan: ReplayPlan,
    whole: Frame,
    due: NDArray[np.bool_],
    leaving: NDArray[np.bool_],
) -> Measurements:
    """What the requests that are due measure, as in a whole open loop, with the windows that were carried; charged the network time of those that leave."""
    requests, count = whole.requests, len(due)
    kinds = np.where(due, requests.kinds, np.int8(NO_KIND))
    percents = np.where(due, requests.percents, np.nan)
    networks = np.where(leaving, whole.networks, 0.0)
    requests = requests._replace(kinds=kinds, percents=percents)
    charged = replace(whole, requests=requests, networks=networks)
    rates = np.zeros((max(1, len(plan.slots)), count), np.float64)
    spans = np.zeros((max(1, len(plan.slots)), count), np.int64)
    brokers: list[Any] = whole.brokers.to_pylist()
    for (kind, number, (samples, window_ms)), slot in plan.slots.items():
        sensors = sensors_of(plan, kind, number, slot)
        limited = np.flatnonzero(sensors >= 0)
        if not len(limited):
            continue
        # only those that occur, of the first pair of each
        _, first, local = np.unique(sensors[limited], return_index=True, return_inverse=True)
        sensors[limited] = local
        pairs, resolved = limited[first], plan.resolved[number]
        tags = resolved.tags[whole.pair_entities[pairs]].tolist()
        at = whole.pair_brokers[pairs].tolist()
        keys = [(*resolved.names[tag], brokers[place]) for tag, place in zip(tags, at, strict=True)]
        held, every = carried.rows[f"sensors {slot}"], np.arange(len(keys))
        windows = empty_windows(len(keys), samples)
        state = _by_row(len(keys), windows, *SensorWindows._fields)
        held.fill(state, every, keys)
        rows, events = events_of(charged, sensors, kind)
        measured = observe(events, len(keys), samples, window_ms, count, windows)
        held.hold(state, every, keys)
        idle_ms = carried.until(key[-1] for key in held.places)
        idle_ms -= held.columns["lasts"].max(axis=1)
        held.forget(idle_ms <= max(IDLE_MS, (samples + 2) * window_ms))
        checked = events.treatments != UNCHECKED
        rates[slot][rows[checked]] = measured.rates[checked]
        spans[slot][rows[checked]] = measured.spans[checked]
    return Measurements(rates[:, due].ravel(), spans[:, due].ravel())


def _entered(
    carried: Carried,
    plan: ReplayPlan,
    outcomes: MutationOutcomes,
    measured: Measurements,
    hashes: Ints,
) -> pa.Table:
    """The results of the requests, entered into a ledger that begins with the mutes and bursts that were carried."""
    frame, ledger = plan.frame, new_ledger(plan.sizes())
    limits = limits_of(plan, carried.ranks)
    carried.ranks = limits.ranks
    names, brokers = frame.entities.names(), frame.brokers.to_pylist()
    present = np.unique(frame.requests.pairs)
    of_pairs: dict[int, _Key] = {}
    for pair in present.tolist():
        name = names[frame.pair_entities[pair]]
        of_pairs[pair] = (*name, brokers[frame.pair_brokers[pair]])
    keys = list(of_pairs.values())
    pairs = _by_row(frame.pairs, ledger, "pairs", "bursts")
    cells = ledger.cells.reshape(frame.pairs, -1, FIELDS)
    pairs["cells"] = cells[..., _OF_CELLS].reshape(frame.pairs, -1)
    carried.rows["pairs"].fill(pairs, present, keys)
    cells[..., _OF_CELLS] = pairs["cells"].reshape(*cells.shape[:2], len(_OF_CELLS))
    connections, first = np.unique(frame.requests.connections, return_index=True)
    hashes, at = hashes[first], frame.requests.pairs[first]
    mutes = _by_row(frame.connections, ledger, "mute_ends", "mute_kinds", "latest", "muting")
    muted = carried.rows["connections"]

    def of_connections(chosen: NDArray[np.bool_]) -> tuple[Codes, list[_Key]]:
        found = zip(hashes[chosen].tolist(), at[chosen].tolist(), strict=True)
        return connections[chosen], [(each, *of_pairs[pair]) for each, pair in found]

    known = np.isin(hashes, [key[0] for key in muted.places])
    muted.fill(mutes, *of_connections(known))
    enter(plan, limits, outcomes, measured, ledger)
    until = carried.until(brokers)[frame.pair_brokers[at]]
    muted.hold(mutes, *of_connections(ledger.latest[connections] > until))
    until = carried.until(key[-1] for key in muted.places)
    muted.forget(muted.columns["latest"].max(axis=1, initial=0) > until)
    results = _closed(plan, ledger, limits.ranks)
    pairs["cells"] = cells[..., _OF_CELLS].reshape(frame.pairs, -1)
    carried.rows["pairs"].hold(pairs, present, keys)
    _forget_resting(carried)
    return results


def _closed(plan: ReplayPlan, ledger: ReplayLedger, ranks: Codes) -> pa.Table:
    """The results; in the ledger stays what the next part needs: of mutes beyond an entity's activity how long, since they count once it goes on."""
    closed = ledger._replace(cells=ledger.cells.copy(), bursts=ledger.bursts * 0)
    results = results_of(plan, booked_of(closed, plan.sizes(), ranks), of_active=True)
    cells = ledger.cells.reshape(-1, FIELDS)
    shut = closed.cells.reshape(-1, FIELDS)
    cells[:, MUTED_MS] = cells[:, MUTE_END] - shut[:, MUTE_END]
    ledger.pairs.reshape(-1, PAIR_FIELDS)[:, ACTIVE_MS] = 0
    return results


def _forget_resting(carried: Carried) -> None:
    """Drop entities that came to rest."""
    pairs = carried.rows["pairs"]
    columns, count = pairs.columns, len(pairs.places)
    beyond = columns["cells"].reshape(count, -1, len(_OF_CELLS))[..., 0]
    clear = ~columns["bursts"].any(axis=1) & ~beyond.any(axis=1)
    rest_ms = carried.until(key[-1] for key in pairs.places)
    rest_ms -= columns["pairs"][:, [ACTIVE_END, LATEST_MUTE]].max(axis=1)
    pairs.forget(rest_ms <= np.where(clear, IDLE_MS, _UNCLEAR_MS))
