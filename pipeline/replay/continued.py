"""
An open loop in parts: the brokers' state between two requests is saved, and the next part continues from there.

The parts together equal one replay: windows, buckets, mutes and bursts after two parts are those after one (tests cut
at random places). Lines of a log come in the order of their completion, and of several brokers in none: the newest
requests of each broker wait until `hold_ms` passed after them, and are then decided in order. A request that comes
later than that is decided at the time that its broker has reached.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quotascope.quotas.candidates import Candidate

from ..columns import array
from ..history.schema import HISTORY
from .algorithms import IDLE_MS, STATE, Measurements, SensorRings, SensorWindows, empty_windows
from .compiled import LONG_MAX, Ints
from .frame import MUTATION, NEEDED, NO_KIND, Frame, entities_of, frame_of, in_order, ints, needed
from .ledger import ACTIVE_END, ACTIVE_MS, FIELDS, LATEST_MUTE, MUTE_END, MUTED_MS, RESULT_FIELDS, booked_of, new_ledger
from .open_loop import MutationOutcomes, decide, enter, limits_of, measured_by
from .plan import CandidateRules, ReplayPlan, ReplaySettings, ResolvedRules, buckets_of, plan_of
from .results import RESULTS, results_of

HOLD_MS: Final = 10_000
"""Time for which the newest requests of a broker wait for earlier ones."""
_MOST_AHEAD_MS: Final = 24 * 3_600_000
"""Greatest time by which a request may be logged ahead: brokers' clocks differ, and a time zone may be wrong."""
_UNCLEAR_MS: Final = 24 * IDLE_MS
"""Time without a request after which an entity is forgotten that was throttled at last."""
_Key: TypeAlias = tuple[Any, ...]
"""Names of a row; the last part is its broker, but for the buckets of mutations."""
_WAITING: Final = pa.schema([HISTORY.field(name) for name in NEEDED])


class Rows:
    """State of kernels by key between two parts: each key has a row in each of some arrays."""

    def __init__(self, keys: Iterable[_Key] = ()) -> None:
        self.places: dict[_Key, int] = {key: place for place, key in enumerate(keys)}
        self.columns: dict[str, NDArray[Any]] = {}

    def at(self, keys: Iterable[_Key]) -> Ints:
        """Return the places of keys; a new key has zeros."""
        places_by_key = self.places
        places = np.array([places_by_key.setdefault(key, len(places_by_key)) for key in keys], np.int64)
        for name, column in self.columns.items():
            if len(column) < len(places_by_key):
                self.columns[name] = np.pad(column, ((0, len(places_by_key) - len(column)), (0, 0)))
        return places

    @contextmanager
    def over(self, arrays: Mapping[str, NDArray[Any]], keys: Collection[_Key]) -> Iterator[None]:
        """Write the rows of keys into a kernel's arrays, one row each; afterwards keep the content of the arrays."""
        old = np.array([key in self.places for key in keys], np.bool_)
        places = self.at(keys)
        for name, column in self.columns.items():
            arrays[name][old] = column[places[old]].reshape(-1, *arrays[name].shape[1:])
        yield
        for name, by_row in arrays.items():
            rows = by_row.reshape(len(keys), -1)
            column = self.columns.setdefault(name, np.zeros((len(self.places), rows.shape[1]), rows.dtype))
            column[places] = rows

    def forget(self, is_kept: NDArray[np.bool_]) -> None:
        """Drop the rows of other keys."""
        if not is_kept.all():
            keys = [key for key, keeps in zip(self.places, is_kept, strict=True) if keeps]
            self.places = {key: place for place, key in enumerate(keys)}
            self.columns = {name: column[is_kept] for name, column in self.columns.items()}


@dataclass(slots=True)
class Carried:
    """State between two parts."""

    requests: pa.Table = field(default_factory=_WAITING.empty_table)
    """Waiting requests, `frame.NEEDED`."""
    owed: pa.Table = field(default_factory=_WAITING.empty_table)
    """Decided requests whose network time is charged when their response has left."""
    rows: defaultdict[str, Rows] = field(default_factory=lambda: defaultdict(Rows))
    """
    Rows of `buckets`, `pairs`, muted `connections`, `sensors` by slot (`plan.ReplayPlan.slots`), and `brokers`.

    A broker has `times`, in epoch ms: of its newest request, of the last arrival of a request, and the end of its
    decided requests.
    """

    def saved(self) -> pa.Table:
        """Return the state as a row of lists."""
        tables = {"requests": self.requests, "owed": self.owed}
        for name, rows in self.rows.items():
            columns: dict[str, Any] = {
                f"key{place}": array(part) for place, part in enumerate(zip(*rows.places, strict=True))
            }
            for column_name, column in rows.columns.items():
                columns[column_name] = pa.FixedSizeListArray.from_arrays(array(column.ravel()), column.shape[1])
            tables[name] = pa.table(columns)
        lists: dict[str, Any] = {}
        for name, table in tables.items():
            ends: Any = [0, len(table)]
            lists[name] = pa.LargeListArray.from_arrays(ends, table.to_struct_array().combine_chunks())
        return pa.table(lists)

    @classmethod
    def loaded(cls, saved: pa.Table) -> Carried:
        """Return the state that `saved` returned."""
        tables = {name: pa.Table.from_struct_array(saved[name][0].values) for name in saved.column_names}
        carried = cls(requests=tables.pop("requests"), owed=tables.pop("owed"))
        for name, table in tables.items():
            keys = [
                table[column_name].to_pylist() for column_name in table.column_names if column_name.startswith("key")
            ]
            rows = carried.rows[name] = Rows(zip(*keys, strict=True))
            for column_name in table.column_names[len(keys) :]:
                lists: Any = table[column_name].combine_chunks()
                rows.columns[column_name] = np.array(lists.flatten()).reshape(-1, lists.type.list_size)
        return carried

    def until(self, held: Rows) -> Ints:
        """Return by row the time until which the requests of its broker are decided."""
        brokers = self.rows["brokers"]
        times: Ints = brokers.columns["times"][brokers.at((key[-1],) for key in held.places), 2]
        return times


@dataclass(slots=True, kw_only=True)
class Part:
    """Result of a part of the requests."""

    results: pa.Table = field(default_factory=RESULTS.empty_table)
    """`results.RESULTS` of the decided requests, by broker: of several parts the sums, and the largest of maxima."""
    decided: int = 0
    waiting: int = 0
    """Number of requests that are decided later, when earlier ones cannot come any more."""
    late: int = 0
    """
    Number of requests that came after that, or were logged more than a day ahead.

    They are decided at the time that their broker had reached, or as of their arrival.
    """
    until_ms: int = 0
    """Time of the last decided request, epoch ms; 0 for none."""


def fingerprint(candidates: Sequence[Candidate]) -> str:
    """Return a name of rules and of the layout of the state: state under some rules says nothing under others."""
    content: list[object] = [FIELDS]
    for candidate in candidates:
        quotas = sorted((str(rule), sorted(keys.items())) for rule, keys in candidate.quotas.items())
        content.append(
            (candidate.name, quotas, candidate.windows, candidate.controller_windows, candidate.mutation_policy)
        )
    return blake2b(repr(content).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def proceed(
    carried: Carried, rows: pa.Table, rules: CandidateRules, settings: ReplaySettings, *, now_ms: int, hold_ms: int
) -> Part:
    """
    Decide the waiting requests and `rows` as far as possible, and keep the state.

    Args:
        carried: state of the part before, which is changed.
        rows: rows of a history, each once, and all of each user, or of all users that share a limit.
        rules: rules, the same for all parts.
        settings: settings as of `replay`, with results by broker.
        now_ms: present time; a broker without a new request for `hold_ms` waits no longer.
        hold_ms: time for which requests wait for earlier ones; 0 decides all of them at once.

    """
    new, late = _in_time(carried, needed(rows).cast(_WAITING), now_ms)
    table = pa.concat_tables([carried.owed, carried.requests, new])
    groups = np.zeros(len(table), np.int64)
    order = in_order(table, groups)
    table, is_owed = table.take(array(order)), order < len(carried.owed)
    entities, codes = entities_of(table)
    whole = frame_of(table, entities, codes, groups)
    cuts = _cuts(carried, whole, now_ms, hold_ms)
    until = cuts[whole.pair_brokers[whole.requests.pairs]]
    due = ~is_owed & (whole.requests.times < until)
    carried.requests = table.filter(array(~is_owed & ~due))
    waiting = len(carried.requests)
    if not due.any():
        return Part(waiting=waiting, late=late)
    owing = (is_owed | due) & (whole.networks > 0) & (whole.completed >= until)
    carried.owed = table.filter(array(owing))
    plan = plan_of(_only(whole, due), rules, rules.resolve(entities), settings)
    outcomes = _mutations(carried, plan)
    measured = _measured(carried, plan, whole, due, (is_owed | due) & ~owing)
    results = _entered(carried, plan, outcomes, measured, ints(table, "connection")[due])
    return Part(
        results=results,
        decided=int(due.sum()),
        waiting=waiting,
        late=late,
        until_ms=int(plan.frame.requests.times.max()),
    )


def _in_time(carried: Carried, rows: pa.Table, now_ms: int) -> tuple[pa.Table, int]:
    """Return the rows, none of them before their broker's time or a day ahead, and how many were moved for that."""
    brokers = carried.rows["brokers"]
    brokers.columns.setdefault("times", np.zeros((0, 3), np.int64))
    if not len(rows):
        return rows, 0
    names = rows["broker"].combine_chunks().dictionary_encode()
    places = brokers.at((name,) for name in names.dictionary.to_pylist())
    places = places[names.indices.to_numpy()]
    newest, arrived_ms, until = brokers.columns["times"].T
    times = rows["timestamp"].to_numpy()
    # Otherwise one line of a clock that was wrong for a moment would make all later lines of its broker late.
    ahead = times > now_ms + _MOST_AHEAD_MS
    late = int((ahead | (times < until[places])).sum())
    if late:
        # the present time does not serve: the log may be read long after it was written
        own_ms = np.where(newest > 0, newest + now_ms - arrived_ms, now_ms)[places]
        earliest, latest = array(until[places]), array(np.where(ahead, own_ms, LONG_MAX))
        for name in ("timestamp", "completed", "mutation_timestamp"):
            sooner = pc.min_element_wise(rows[name], latest, skip_nulls=False)
            moved = pc.max_element_wise(sooner, earliest, skip_nulls=False)
            place = rows.column_names.index(name)
            rows = rows.set_column(place, _WAITING.field(name), moved)
    np.maximum.at(newest, places, rows["timestamp"].to_numpy())
    arrived_ms[places] = now_ms
    return rows, late


def _cuts(carried: Carried, whole: Frame, now_ms: int, hold_ms: int) -> Ints:
    """
    Return by broker of the frame the time until which its requests are decided now.

    Brokers that are not behind the newest by more than `hold_ms` are cut at one time, and where no mutation lies
    between its charge by the controller and its decision: the bucket is one for all.
    """
    brokers_rows = carried.rows["brokers"]
    places = brokers_rows.at((name,) for name in whole.brokers.to_pylist())
    newest, arrived_ms, until = brokers_rows.columns["times"].T
    newest_of_all = newest.max(initial=0)
    silent, near = now_ms - arrived_ms >= hold_ms, newest >= newest_of_all - hold_ms
    common = newest[near & ~silent].min(initial=newest_of_all)
    # What a silent broker sends next is logged by its own clock: another one that is ahead does not make it late.
    own_ms = np.maximum(newest + 1, now_ms - hold_ms)
    if hold_ms == 0 or silent.all():
        common, hold_ms = newest_of_all + 1, 0
    ends = np.where(near | silent, common, newest) - hold_ms
    ends[silent] = np.minimum(ends, own_ms)[silent]
    cuts: Ints = np.maximum(until, ends)[places]
    if hold_ms:
        cuts = _between_mutations(whole, cuts, until[places], hold_ms)
    until[places] = cuts
    return cuts


def _between_mutations(whole: Frame, cuts: Ints, reached: Ints, hold_ms: int) -> Ints:
    """
    Return earlier cuts of all brokers if mutations are charged before their cut and decided after it.

    Mutations that wait on a broker that is behind the others do the same.
    """
    mutating = np.flatnonzero(whole.requests.kinds == MUTATION)
    decided = whole.requests.times[mutating]
    charged = np.minimum(whole.mutation_times[mutating], decided)
    brokers = whole.pair_brokers[whole.requests.pairs[mutating]]
    lowest = np.maximum(reached, cuts - hold_ms)
    while True:
        waits = decided >= cuts[brokers]
        split = waits & (charged < cuts[brokers])
        waits_behind = waits & (cuts[brokers] < cuts.max(initial=0))
        lower = cuts
        if split.any():
            lower = np.minimum(lower, np.maximum(lowest, charged[split].min()))
        if waits_behind.any():
            lower = np.minimum(lower, np.maximum(reached, charged[waits_behind].min()))
        if (lower == cuts).all():
            return cuts
        cuts = lower


def _only(frame: Frame, due: NDArray[np.bool_]) -> Frame:
    names = "groups", "networks", "completed", "throttles", "mutation_times", "charged"
    chosen: dict[str, Any] = {name: getattr(frame, name)[due] for name in names}
    columns: Any = (column[due] for column in frame.requests)
    requests = type(frame.requests)(*columns)
    connections = np.unique(requests.connections, return_inverse=True)[1].astype(np.int32)
    return replace(frame, requests=requests._replace(connections=connections), **chosen)


def _mutations(carried: Carried, plan: ReplayPlan) -> MutationOutcomes:
    """Return the decisions of the mutation quotas, with the carried buckets."""
    numbers, buckets, spreads = buckets_of(plan, range(len(plan.candidates)))
    keys: list[_Key] = []
    for candidate in range(len(plan.candidates)):
        resolved = plan.resolution(candidate, MUTATION)
        tags = np.unique(resolved.tags[resolved.tags >= 0]).tolist()
        keys += [(candidate, *resolved.names[tag]) for tag in tags]
    if not keys:
        return decide(plan, (numbers, buckets, spreads))
    bucket_rows = carried.rows["buckets"]
    state = _by_row(len(keys), buckets, "tokens", "touched", "charged")
    state |= _by_row(len(keys), spreads, "windows", "currents")
    with bucket_rows.over(state, keys):
        outcomes = decide(plan, (numbers, buckets, spreads))
    last_ms = carried.rows["brokers"].columns["times"][:, 2].max()
    charged = bucket_rows.columns["charged"].max(axis=1) >= last_ms - 2 * IDLE_MS
    bucket_rows.forget(charged | bucket_rows.columns["windows"].any(axis=1))
    return outcomes


def _by_row(count: int, state: NamedTuple, *names: str) -> dict[str, NDArray[Any]]:
    """Return flat arrays of a kernel by row, as views: writing to them writes to the kernel's."""
    return {name: getattr(state, name).reshape(count, -1) for name in names}


def _measured(
    carried: Carried, plan: ReplayPlan, whole: Frame, due: NDArray[np.bool_], leaving: NDArray[np.bool_]
) -> Measurements:
    """
    Return the measurements of the due requests, as in one open loop, with the carried windows.

    The network time of leaving requests is charged.
    """
    kinds = np.where(due, whole.requests.kinds, np.int8(NO_KIND))
    percents = np.where(due, whole.requests.percents, np.nan)
    requests = whole.requests._replace(kinds=kinds, percents=percents)
    charged = replace(whole, requests=requests, networks=np.where(leaving, whole.networks, 0.0))
    brokers: list[Any] = whole.brokers.to_pylist()

    @contextmanager
    def windows_of(
        slot: int, resolved: ResolvedRules, pairs: Ints, rings: SensorRings, samples: int, window_ms: int
    ) -> Iterator[SensorWindows]:
        tags = resolved.tags[whole.pair_entities[pairs]].tolist()
        broker_places = whole.pair_brokers[pairs].tolist()
        keys = [(*resolved.names[tag], brokers[broker]) for tag, broker in zip(tags, broker_places, strict=True)]
        sensor_rows, windows = carried.rows[f"sensors {slot}"], empty_windows(rings, samples)
        with sensor_rows.over(_by_row(len(keys), windows, *STATE), keys):
            yield windows
        idle_ms = carried.until(sensor_rows) - sensor_rows.columns["lasts"].max(axis=1)
        sensor_rows.forget(idle_ms <= max(IDLE_MS, (samples + 2) * window_ms))

    rates, spans = measured_by(plan, charged, windows_of)
    return Measurements(rates.reshape(-1, len(due))[:, due].ravel(), spans.reshape(-1, len(due))[:, due].ravel())


def _entered(
    carried: Carried, plan: ReplayPlan, outcomes: MutationOutcomes, measured: Measurements, hashes: Ints
) -> pa.Table:
    """Return the results of the requests, entered into a ledger that begins with the carried mutes and bursts."""
    frame, ledger, limits = plan.frame, new_ledger(plan.sizes()), limits_of(plan)
    names, brokers = frame.entities.names(), frame.brokers.to_pylist()
    placed = zip(frame.pair_entities.tolist(), frame.pair_brokers.tolist(), strict=True)
    of_pairs: list[_Key] = [(*names[entity], brokers[broker]) for entity, broker in placed]
    first_rows = np.unique(frame.requests.connections, return_index=True)[1]
    hash_and_pair = zip(hashes[first_rows].tolist(), frame.requests.pairs[first_rows].tolist(), strict=True)
    of_connections = [(connection, *of_pairs[pair]) for connection, pair in hash_and_pair]
    pair_rows, muted = carried.rows["pairs"], carried.rows["connections"]
    pairs = _by_row(frame.pairs, ledger, "pairs", "bursts")
    cells = ledger.cells.reshape(frame.pairs, -1, FIELDS)
    pairs["cells"] = cells[..., RESULT_FIELDS:]
    mutes = _by_row(frame.connections, ledger, "mute_ends", "mute_kinds", "latest", "muting")
    with pair_rows.over(pairs, of_pairs), muted.over(mutes, of_connections):
        # The rest of a mute, beyond an entity's activity in this part, counts once that activity goes on.
        cells[..., MUTED_MS] = np.maximum(0, cells[..., MUTE_END] - pairs["pairs"][:, [ACTIVE_END]])
        pairs["pairs"][:, ACTIVE_MS] = 0
        enter(plan, limits, outcomes, measured, ledger)
    muted.forget(muted.columns["latest"].max(axis=1) > carried.until(muted))
    _forget_resting(carried)
    ledger.bursts[:] = 0  # open bursts are not over yet
    return results_of(plan, booked_of(ledger, plan.sizes(), limits.ranks), of_active=True)


def _forget_resting(carried: Carried) -> None:
    """Drop entities that came to rest."""
    pair_rows = carried.rows["pairs"]
    pairs, bursts, cells = (pair_rows.columns[name] for name in ("pairs", "bursts", "cells"))
    is_muted = cells[:, MUTE_END - RESULT_FIELDS :: FIELDS - RESULT_FIELDS] > pairs[:, [ACTIVE_END]]
    clear = ~bursts.any(axis=1) & ~is_muted.any(axis=1)
    rest_ms = carried.until(pair_rows) - pairs[:, [ACTIVE_END, LATEST_MUTE]].max(axis=1)
    pair_rows.forget(rest_ms <= np.where(clear, IDLE_MS, _UNCLEAR_MS))
