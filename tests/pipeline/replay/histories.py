"""Histories and candidates for the tests of replays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from tests.builders.requests import CREATE_TOPICS, FETCH, METADATA, PRODUCE, Request
from tests.strategies import EPOCH_MS

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.pipeline.history import HISTORY
from quotascope.pipeline.replay import ReplaySettings
from quotascope.quotas import Entity, QuotaSet
from quotascope.quotas.candidates import Candidate

SIZES = ("produce_bytes", "fetch_bytes", "mutations")
KEY = ("candidate", "broker", "user", "client_id", "quota_type")
KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")


def history(requests: Sequence[Request]) -> pa.Table:
    """Return requests one after another, in the order of one log."""
    now_ms, rows = EPOCH_MS, []
    for position, request in enumerate(requests, 1):
        now_ms += request.after_ms
        rows.append(replace(request, at_ms=now_ms).history(file="a.log", position=position))
    return pa.Table.from_pylist(rows, HISTORY)


def candidate(quotas: Mapping[QuotaEntity, Mapping[str, float]], name: str = "tried", **options: Any) -> Candidate:
    rules: dict[Entity, Mapping[str, float]] = {}
    rules.update(quotas.items())
    return Candidate(name=name, quotas=QuotaSet(rules), **options)


users = st.sampled_from(("alice", "bob", "<default>", "a\nb"))
clients = st.sampled_from(("app", "other", ""))
requests = st.builds(
    Request,
    after_ms=st.one_of(st.integers(0, 400), st.sampled_from((0, 1_000, 11_000))),
    user=users,
    client_id=clients,
    broker=st.sampled_from(("1", "2")),
    connection=st.integers(1, 3),
    api_key=st.sampled_from((PRODUCE, PRODUCE, FETCH, METADATA, CREATE_TOPICS)),
    api_version=st.sampled_from((4, 7)),
    cost=st.integers(1, 50_000),
    request_us=st.one_of(st.none(), st.integers(0, 900_000)),
    network_us=st.one_of(st.none(), st.integers(0, 9_000)),
    network_after_ms=st.integers(0, 50),
    wait_ms=st.sampled_from((0, 0, 20)),
)
entities = st.builds(
    QuotaEntity, st.sampled_from(("alice", "bob", "<default>", DEFAULT)), st.sampled_from(("app", DEFAULT, None))
) | st.builds(QuotaEntity, st.none(), st.sampled_from(("app", "other", DEFAULT)))
bounds = st.sampled_from((0.0, 1.0, 40.0, 500.0, 20_000.0, 1e9))
quota_sets = st.dictionaries(
    entities, st.dictionaries(st.sampled_from(KEYS), bounds, min_size=1), min_size=1, max_size=6
)


releases = st.sampled_from(
    [KafkaRelease.parse(version) for version in ("2.8", "3.2", "3.4", "3.7", "3.9", "4.1", "4.3", "4.4")]
)
mixes = st.builds(
    lambda all_, second: ReplaySettings(per_broker=True, release=all_, releases={"2": second}), releases, releases
)
"""Settings of a cluster whose second broker may be of another release."""


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return sorted(rows, key=lambda row: [str(row[name]) for name in KEY])


def crowd(users: int, rows: int) -> pa.Table:
    """Requests of many users, sorted by user."""
    random = np.random.default_rng(7)
    whose = random.integers(users, size=rows)
    made = [
        Request(
            after_ms=13,
            user=f"user {client}",
            client_id=f"client {client % 3}",
            api_key=PRODUCE if client % 2 else METADATA,
            cost=int(random.integers(200_000)),
            request_us=int(random.integers(50_000)),
        )
        for client in whose
    ]
    return history(made).sort_by([("user", "ascending"), ("timestamp", "ascending")])


CROWD = [candidate({QuotaEntity(DEFAULT): {"producer_byte_rate": 20_000.0, "request_percentage": 0.3}})]
SHARED = candidate({QuotaEntity(None, DEFAULT): {"producer_byte_rate": 50_000.0}}, name="shared")
"""Limits that the users of a client id share."""
