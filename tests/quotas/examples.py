"""Entities, quotas and documents that the tests share: literal ones, and random ones with untrusted names."""

from math import inf

from hypothesis import strategies as st
from tests.strategies import HOSTILE

from quotascope.clients import ConfiguredQuota
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.validation import CLIENT_QUOTA_KEYS, IP_QUOTA_KEYS
from quotascope.quotas import Entity, IpEntity, QuotaSet, to_admin

PRODUCE, CONSUME, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
ALICE = QuotaEntity("alice")
DEFAULT_USER, DEFAULT_CLIENT, DEFAULT_PAIR = (
    QuotaEntity(DEFAULT),
    QuotaEntity(None, DEFAULT),
    QuotaEntity(DEFAULT, DEFAULT),
)

SHAPES: tuple[tuple[Entity, str, str], ...] = (
    (DEFAULT_USER, "6 user <default>", "user: <default>"),
    (DEFAULT_PAIR, "5 <default> / <default>", "user: <default>, client-id: <default>"),
    (QuotaEntity(DEFAULT, "etl"), "4 <default> / etl", "user: <default>, client-id: etl"),
    (QuotaEntity("<default>"), '3 user "<default>"', "user: {name: <default>}"),
    (ALICE, "3 user alice", "user: alice"),
    (QuotaEntity("alice", DEFAULT), "2 alice / <default>", "user: alice, client-id: <default>"),
    (QuotaEntity("alice", "etl"), "1 alice / etl", "user: alice, client-id: etl"),
    (QuotaEntity("svc:team a", "b"), '1 "svc:team a" / b', "user: 'svc:team a', client-id: b"),
    (DEFAULT_CLIENT, "8 client-id <default>", "client-id: <default>"),
    (QuotaEntity(None, "etl"), "7 client-id etl", "client-id: etl"),
    (IpEntity(DEFAULT), "ip <default>", "ip: <default>"),
    (IpEntity("::1"), "ip ::1", "ip: '::1'"),
)
"""Entities of every shape in the order that people expect, each with its rule and as a file names it."""

names = st.one_of(
    st.sampled_from([name[:200] for name in HOSTILE if name]),
    st.text(min_size=1, max_size=20),
    st.text(alphabet='ab"\\*?\n\r,=:%+ ~._-\t#{}[]&!|>@`', min_size=1, max_size=12),
    st.sampled_from(("123", "yes", "null", "~", "1e6", "0x1", "- a", "#", "CN=a,O=b", "\x1b[2J", "\0")),
)
"""Names of users or clients: any text that is not empty."""

_parts = st.none() | st.just(DEFAULT) | names
_entities = st.tuples(_parts, _parts).filter(any).map(lambda parts: QuotaEntity(*parts))
_addresses = st.ip_addresses().map(str) | st.sampled_from(("broker-7.example.com", DEFAULT))
_rates = st.floats(1e-9, 1e15) | st.just(inf)
_client_values = st.dictionaries(
    st.sampled_from(sorted(CLIENT_QUOTA_KEYS)), st.integers(1, 2**53).map(float), min_size=1
) | st.fixed_dictionaries({PERCENT: _rates, MUTATIONS: _rates})
_ip_values = st.fixed_dictionaries({key: st.integers(1, 2**31 - 1).map(float) for key in IP_QUOTA_KEYS})
quota_sets = st.builds(
    lambda clients, ips: QuotaSet({**clients, **ips}),
    st.dictionaries(_entities, _client_values, max_size=5),
    st.dictionaries(st.builds(IpEntity, _addresses), _ip_values, max_size=2),
)
"""Quotas that a controller would store, up to 4.3 also infinite ones."""


def configured(quotas: QuotaSet) -> tuple[ConfiguredQuota, ...]:
    """Return the quotas as a cluster reports them."""
    return tuple(
        ConfiguredQuota(entity=to_admin(entity), key=key, value=value) for entity, key, value in quotas.items_by_key()
    )
