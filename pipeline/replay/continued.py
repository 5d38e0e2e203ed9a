"""
Open loop in parts: the state of the brokers after a part is saved, and the next part continues from there.

The parts together give the same results as one replay: windows, buckets, mutes and bursts are the same (tests cut at
random places). Lines of a log are in the order of completion, and lines of several brokers in no order. So the newest
requests of each broker wait for `hold_ms`, and are then decided in order. A request that comes later than that is
decided at the time until which its broker was decided.
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
"""Longest time by which a request may be ahead of the clock: brokers' clocks differ, and a time zone may be wrong."""
_UNCLEAR_MS: Final = 24 * IDLE_MS
"""Time without a request after which the state of an entity is dropped whose last request was throttled."""
_Key: TypeAlias = tuple[Any, ...]
"""Key of a row of state. The last element is the broker, except for keys of buckets."""
_WAITING: Final = pa.schema([HISTORY.field(name) for name in NEEDED])


class Rows:
    """State of kernels between two parts: some arrays, with a row for each key."""

    def __init__(self, keys: Iterable[_Key] = ()) -> None:
        self.places: dict[_Key, int] = {key: place for place, key in enumerate(keys)}
        """Index of the row by key."""
        self.columns: dict[str, NDArray[Any]] = {}
        """Arrays by name; rows x values of a key."""

    def places_of(self, keys: Iterable[_Key]) -> Ints:
        """Return the indices of the rows of keys, after adding a row of zeros for each new key."""
        places_by_key = self.places
        places = np.array([places_by_key.setdefault(key, len(places_by_key)) for key in keys], np.int64)
        for name, column in self.columns.items():
            if len(column) < len(places_by_key):
                self.columns[name] = np.pad(column, ((0, len(places_by_key) - len(column)), (0, 0)))
        return places

    @contextmanager
    def lent_to(self, arrays: Mapping[str, NDArray[Any]], keys: Collection[_Key]) -> Iterator[None]:
        """
        Copy the rows of keys to the arrays of a kernel, and back at the end of the context.

        Args:
            arrays: arrays of the kernel by the name of the column, with a row for each of `keys`.
            keys: keys of the rows, in the order of the arrays.

        """
        # before `places_of` adds the new keys, whose rows of the kernel stay as they are
        is_old = np.array([key in self.places for key in keys], np.bool_)
        places = self.places_of(keys)
        for name, column in self.columns.items():
            arrays[name][is_old] = column[places[is_old]].reshape(-1, *arrays[name].shape[1:])
        yield
        for name, by_row in arrays.items():
            rows = by_row.reshape(len(keys), -1)
            column = self.columns.setdefault(name, np.zeros((len(self.places), rows.shape[1]), rows.dtype))
            column[places] = rows

    def keep(self, is_kept: NDArray[np.bool_]) -> None:
        """Drop all rows except those of a mask."""
        if not is_kept.all():
            keys = [key for key, keeps in zip(self.places, is_kept, strict=True) if keeps]
            self.places = {key: place for place, key in enumerate(keys)}
            self.columns = {name: column[is_kept] for name, column in self.columns.items()}


@dataclass(slots=True)
class Carried:
    """State between two parts."""

    requests: pa.Table = field(default_factory=_WAITING.empty_table)
    """Waiting requests, with the columns `frame.NEEDED`."""
    owed: pa.Table = field(default_factory=_WAITING.empty_table)
    """Decided requests whose network time is not charged yet, because their response has not left."""
    rows: defaultdict[str, Rows] = field(default_factory=lambda: defaultdict(Rows))
    """
    State of `buckets`, `pairs`, muted `connections`, `brokers`, and `sensors N` for each slot N (`plan.ReplayPlan`).

    The only column of `brokers` is `times`, in epoch ms: the time of the newest request, the time when the last request
    arrived here, and the time until which requests are decided.
    """

    def saved(self) -> pa.Table:
        """
        Return the state as a table of one row: a list of rows for each of its tables.

        In the table of a `Rows`, the columns `key0`, `key1`, and so on have the elements of the keys.
        """
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
        """Return the state that `saved` wrote."""
        tables = {name: pa.Table.from_struct_array(saved[name][0].values) for name in saved.column_names}
        carried = cls(requests=tables.pop("requests"), owed=tables.pop("owed"))
        for name, table in tables.items():
            key_names = [column_name for column_name in table.column_names if column_name.startswith("key")]
            key_parts = [table[column_name].to_pylist() for column_name in key_names]
            rows = carried.rows[name] = Rows(zip(*key_parts, strict=True))
            for column_name in table.column_names[len(key_names) :]:
                lists: Any = table[column_name].combine_chunks()
                rows.columns[column_name] = np.array(lists.flatten()).reshape(-1, lists.type.list_size)
        return carried

    def decided_until(self, rows: Rows) -> Ints:
        """Return the time until which the requests of a row's broker are decided, epoch ms, by row."""
        brokers = self.rows["brokers"]
        times: Ints = brokers.columns["times"][brokers.places_of((key[-1],) for key in rows.places), 2]
        return times


@dataclass(slots=True, kw_only=True)
class Part:
    """Result of one part."""

    results: pa.Table = field(default_factory=RESULTS.empty_table)
    """
    Rows of `results.RESULTS` by broker, of the requests that this part decided.

    Several parts are combined by adding up their sums, and taking the largest of their longest times.
    """
    decided: int = 0
    """Number of requests that this part decided."""
    waiting: int = 0
    """Number of requests that wait for earlier ones."""
    late: int = 0
    """
    Number of requests whose time was moved.

    A request that came after its time had been decided is decided at the end of its broker's decided time. One that was
    logged more than a day ahead of the clock is decided as of its arrival.
    """
    until_ms: int = 0
    """Time of the last decided request, epoch ms; 0 for none."""


def fingerprint(candidates: Sequence[Candidate]) -> str:
    """Return a hash of candidates and of the layout of the state; state is only valid under the same fingerprint."""
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
    Decide the waiting requests and the requests in `rows` as far as possible, and return the results.

    Args:
        carried: state of the previous part, which is changed to the state of this part.
        rows: new rows of a history: all rows of a user, or of all users that share a limit.
        rules: rules, the same for all parts.
        settings: settings as of `replay`, with results by broker.
        now_ms: present time, epoch ms; requests of a broker do not wait if no request has arrived for `hold_ms`.
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
    is_due = ~is_owed & (whole.requests.times < until)
    carried.requests = table.filter(array(~is_owed & ~is_due))
    waiting = len(carried.requests)
    if not is_due.any():
        return Part(waiting=waiting, late=late)
    is_decided = is_owed | is_due
    # the network time is charged when the response leaves, which may be after the time that is decided now
    stays_owed = is_decided & (whole.networks > 0) & (whole.completed >= until)
    carried.owed = table.filter(array(stays_owed))
    plan = plan_of(_only(whole, is_due), rules, rules.resolve(entities), settings)
    outcomes = _mutations(carried, plan)
    measured = _measured(carried, plan, whole, is_due, is_decided & ~stays_owed)
    results = _entered(carried, plan, outcomes, measured, ints(table, "connection")[is_due])
    return Part(
        results=results,
        decided=int(is_due.sum()),
        waiting=waiting,
        late=late,
        until_ms=int(plan.frame.requests.times.max()),
    )


def _in_time(carried: Carried, rows: pa.Table, now_ms: int) -> tuple[pa.Table, int]:
    """
    Return the rows with times that can be decided, and the number of rows whose times were moved for that.

    No time is before the end of its broker's decided time, or more than a day ahead of the clock.
    """
    brokers = carried.rows["brokers"]
    brokers.columns.setdefault("times", np.zeros((0, 3), np.int64))
    if not len(rows):
        return rows, 0
    names = rows["broker"].combine_chunks().dictionary_encode()
    places = brokers.places_of((name,) for name in names.dictionary.to_pylist())
    places = places[names.indices.to_numpy()]
    newest, arrived_ms, until = brokers.columns["times"].T
    times = rows["timestamp"].to_numpy()
    # A line that was logged while the clock was wrong must not make all later lines of its broker late.
    is_ahead = times > now_ms + _MOST_AHEAD_MS
    late = int((is_ahead | (times < until[places])).sum())
    if late:
        # the time that the broker's clock should show: the log may be read long after it was written
        broker_now_ms = np.where(newest > 0, newest + now_ms - arrived_ms, now_ms)[places]
        earliest, latest = array(until[places]), array(np.where(is_ahead, broker_now_ms, LONG_MAX))
        for name in ("timestamp", "completed", "mutation_timestamp"):
            not_after = pc.min_element_wise(rows[name], latest, skip_nulls=False)
            moved = pc.max_element_wise(not_after, earliest, skip_nulls=False)
            place = rows.column_names.index(name)
            rows = rows.set_column(place, _WAITING.field(name), moved)
    np.maximum.at(newest, places, rows["timestamp"].to_numpy())
    arrived_ms[places] = now_ms
    return rows, late


def _cuts(carried: Carried, whole: Frame, now_ms: int, hold_ms: int) -> Ints:
    """
    Return the time until which the requests of a broker are decided now, epoch ms, by broker of the frame.

    Brokers whose newest requests are within `hold_ms` of each other get a common time. It lies between no mutation's
    charge by the controller and its decision, because all brokers share the bucket. The new times are kept in
    `carried`.
    """
    brokers_rows = carried.rows["brokers"]
    places = brokers_rows.places_of((name,) for name in whole.brokers.to_pylist())
    newest, arrived_ms, until = brokers_rows.columns["times"].T
    newest_of_all = newest.max(initial=0)
    is_silent, is_near = now_ms - arrived_ms >= hold_ms, newest >= newest_of_all - hold_ms
    # Brokers that send requests wait for the one that is furthest behind, if it is not more than `hold_ms` behind.
    common = newest[is_near & ~is_silent].min(initial=newest_of_all)
    # The next requests of a silent broker have times of its own clock: a clock that is ahead must not make them late.
    own_ms = np.maximum(newest + 1, now_ms - hold_ms)
    if hold_ms == 0 or is_silent.all():
        common, hold_ms = newest_of_all + 1, 0
    ends = np.where(is_near | is_silent, common, newest) - hold_ms
    ends[is_silent] = np.minimum(ends, own_ms)[is_silent]
    cuts: Ints = np.maximum(until, ends)[places]
    if hold_ms:
        cuts = _between_mutations(whole, cuts, until[places], hold_ms)
    until[places] = cuts
    return cuts


def _between_mutations(whole: Frame, cuts: Ints, reached: Ints, hold_ms: int) -> Ints:
    """
    Return the cuts, moved back so far that all mutations are decided in the order of their charges.

    The cuts of all brokers are moved back to the charge of a mutation that is charged before its broker's cut and
    decided after it, by at most `hold_ms`; and to the charge of a mutation that waits on a broker which is behind the
    others. No cut is moved back beyond `reached`, the time until which a broker was decided before.
    """
    mutating = np.flatnonzero(whole.requests.kinds == MUTATION)
    decided = whole.requests.times[mutating]
    charged = np.minimum(whole.mutation_times[mutating], decided)
    brokers = whole.pair_brokers[whole.requests.pairs[mutating]]
    lowest = np.maximum(reached, cuts - hold_ms)
    while True:
        waits = decided >= cuts[brokers]
        is_split = waits & (charged < cuts[brokers])
        waits_behind = waits & (cuts[brokers] < cuts.max(initial=0))
        moved = cuts
        if is_split.any():
            moved = np.minimum(moved, np.maximum(lowest, charged[is_split].min()))
        if waits_behind.any():
            moved = np.minimum(moved, np.maximum(reached, charged[waits_behind].min()))
        if (moved == cuts).all():
            return cuts
        cuts = moved


def _only(frame: Frame, chosen: NDArray[np.bool_]) -> Frame:
    """Return a frame with the requests of a mask, whose connections are numbered again, and with the same pairs."""
    names = "groups", "networks", "completed", "throttles", "mutation_times", "charged", "positions"
    by_request: dict[str, Any] = {name: getattr(frame, name)[chosen] for name in names}
    columns: Any = (column[chosen] for column in frame.requests)
    requests = type(frame.requests)(*columns)
    connections = np.unique(requests.connections, return_inverse=True)[1].astype(np.int32)
    files = frame.files.filter(array(chosen))
    return replace(frame, requests=requests._replace(connections=connections), files=files, **by_request)


def _mutations(carried: Carried, plan: ReplayPlan) -> MutationOutcomes:
    """Return the decisions of the mutation quotas, which start with the carried buckets and change them."""
    numbers, buckets, spreads = buckets_of(plan, range(len(plan.candidates)))
    keys: list[_Key] = []  # in the order in which `buckets_of` numbers the buckets
    for candidate in range(len(plan.candidates)):
        resolved = plan.resolution(candidate, MUTATION)
        tags = np.unique(resolved.tags[resolved.tags >= 0]).tolist()
        keys += [(candidate, *resolved.names[tag]) for tag in tags]
    if not keys:
        return decide(plan, (numbers, buckets, spreads))
    bucket_rows = carried.rows["buckets"]
    state = _by_row(len(keys), buckets, "tokens", "touched", "charged")
    state |= _by_row(len(keys), spreads, "windows", "currents")
    with bucket_rows.lent_to(state, keys):
        outcomes = decide(plan, (numbers, buckets, spreads))
    last_ms = carried.rows["brokers"].columns["times"][:, 2].max()
    is_in_use = bucket_rows.columns["charged"].max(axis=1) >= last_ms - 2 * IDLE_MS
    bucket_rows.keep(is_in_use | bucket_rows.columns["windows"].any(axis=1))
    return outcomes


def _by_row(count: int, state: NamedTuple, *names: str) -> dict[str, NDArray[Any]]:
    """Return flat arrays of a kernel as views of `count` rows, so that a kernel sees what is written to them."""
    return {name: getattr(state, name).reshape(count, -1) for name in names}


def _measured(
    carried: Carried, plan: ReplayPlan, whole: Frame, is_due: NDArray[np.bool_], is_leaving: NDArray[np.bool_]
) -> Measurements:
    """
    Return the measurements of the due requests by slot and request; the carried windows are changed.

    The network thread's time of requests whose response is leaving is charged, too.
    """
    # Requests that are not due stay in the frame, but are charged nothing.
    kinds = np.where(is_due, whole.requests.kinds, np.int8(NO_KIND))
    percents = np.where(is_due, whole.requests.percents, np.nan)
    requests = whole.requests._replace(kinds=kinds, percents=percents)
    charged = replace(whole, requests=requests, networks=np.where(is_leaving, whole.networks, 0.0))
    brokers: list[Any] = whole.brokers.to_pylist()

    @contextmanager
    def windows_of(
        slot: int, resolved: ResolvedRules, pairs: Ints, rings: SensorRings, samples: int, window_ms: int
    ) -> Iterator[SensorWindows]:
        """Lend the carried windows of the sensors of a slot, and then drop those of sensors that are idle."""
        tags = resolved.tags[whole.pair_entities[pairs]].tolist()
        broker_places = whole.pair_brokers[pairs].tolist()
        keys = [(*resolved.names[tag], brokers[broker]) for tag, broker in zip(tags, broker_places, strict=True)]
        sensor_rows, windows = carried.rows[f"sensors {slot}"], empty_windows(rings, samples)
        with sensor_rows.lent_to(_by_row(len(keys), windows, *STATE), keys):
            yield windows
        idle_ms = carried.decided_until(sensor_rows) - sensor_rows.columns["lasts"].max(axis=1)
        sensor_rows.keep(idle_ms <= max(IDLE_MS, (samples + 2) * window_ms))

    rates, spans = measured_by(plan, charged, windows_of)
    count = len(is_due)
    return Measurements(rates.reshape(-1, count)[:, is_due].ravel(), spans.reshape(-1, count)[:, is_due].ravel())


def _entered(
    carried: Carried, plan: ReplayPlan, outcomes: MutationOutcomes, measured: Measurements, hashes: Ints
) -> pa.Table:
    """
    Enter the requests of a plan into a ledger that begins with the carried mutes and bursts, and return the results.

    `hashes` has the `connection` of each request in the history.
    """
    frame, ledger, limits = plan.frame, new_ledger(plan.sizes()), limits_of(plan)
    names, brokers = frame.entities.names(), frame.brokers.to_pylist()
    entities_and_brokers = zip(frame.pair_entities.tolist(), frame.pair_brokers.tolist(), strict=True)
    pair_keys: list[_Key] = [(*names[entity], brokers[broker]) for entity, broker in entities_and_brokers]
    first_rows = np.unique(frame.requests.connections, return_index=True)[1]
    hashes_and_pairs = zip(hashes[first_rows].tolist(), frame.requests.pairs[first_rows].tolist(), strict=True)
    connection_keys = [(connection_hash, *pair_keys[pair]) for connection_hash, pair in hashes_and_pairs]
    pair_rows, connection_rows = carried.rows["pairs"], carried.rows["connections"]
    pairs = _by_row(frame.pairs, ledger, "pairs", "bursts")
    cells = ledger.cells.reshape(frame.pairs, -1, FIELDS)
    pairs["cells"] = cells[..., RESULT_FIELDS:]
    mutes = _by_row(frame.connections, ledger, "mute_ends", "mute_kinds", "latest", "muting")
    with pair_rows.lent_to(pairs, pair_keys), connection_rows.lent_to(mutes, connection_keys):
        # The previous part cut mutes at the end of the pair's activity. Their rest counts in this part.
        cells[..., MUTED_MS] = np.maximum(0, cells[..., MUTE_END] - pairs["pairs"][:, [ACTIVE_END]])
        pairs["pairs"][:, ACTIVE_MS] = 0
        enter(plan, limits, outcomes, measured, ledger)
    connection_rows.keep(connection_rows.columns["latest"].max(axis=1) > carried.decided_until(connection_rows))
    _drop_idle_pairs(carried)
    ledger.bursts[:] = 0  # a later part counts the bursts that are still open
    return results_of(plan, booked_of(ledger, plan.sizes(), limits.ranks), every_active_entity=True)


def _drop_idle_pairs(carried: Carried) -> None:
    """Drop pairs without a request for `IDLE_MS`, or for `_UNCLEAR_MS` if they have an open burst or a mute."""
    pair_rows = carried.rows["pairs"]
    pairs, bursts, cells = (pair_rows.columns[name] for name in ("pairs", "bursts", "cells"))
    # a saved cell has only the fields after those of the results; of each cell take the mute's end
    mute_ends = cells[:, MUTE_END - RESULT_FIELDS :: FIELDS - RESULT_FIELDS]
    is_muted = mute_ends > pairs[:, [ACTIVE_END]]
    is_clear = ~bursts.any(axis=1) & ~is_muted.any(axis=1)
    idle_ms = carried.decided_until(pair_rows) - pairs[:, [ACTIVE_END, LATEST_MUTE]].max(axis=1)
    pair_rows.keep(idle_ms <= np.where(is_clear, IDLE_MS, _UNCLEAR_MS))
