"""Random quotas with untrusted names."""

from math import inf

from hypothesis import strategies as st
from tests.strategies import HOSTILE

from quotascope.metrics import CLIENT_QUOTA_KEYS, DEFAULT, IP_QUOTA_KEYS, QuotaEntity
from quotascope.quotas import IpEntity, QuotaSet

names = st.one_of(
    st.sampled_from([name[:200] for name in HOSTILE if name]),
    st.text(min_size=1, max_size=20),
    st.text(alphabet='ab"\\*?\n\r,=:%+ ~._-\t#{}[]&!|>@`', min_size=1, max_size=12),
    st.sampled_from(("123", "yes", "null", "~", "1e6", "0x1", "- a", "#", "CN=a,O=b", "\x1b[2J", "\0")),
)
"""What a user or client can be called: anything but nothing."""

_or_default = names | st.just(DEFAULT)
_users = st.builds(QuotaEntity, _or_default)
_clients = st.builds(QuotaEntity, st.none(), _or_default)
_pairs = st.builds(QuotaEntity, _or_default, _or_default)
entities = _users | _clients | _pairs
_addresses = st.ip_addresses().map(str) | st.just("broker-7.example.com")
ips = st.builds(IpEntity, _addresses | st.just(DEFAULT))

_whole = st.integers(1, 2**53).map(float)
_any = st.floats(1e-9, 1e15) | st.just(inf)
_client_values = st.dictionaries(
    st.sampled_from(sorted(CLIENT_QUOTA_KEYS)), _whole, min_size=1
) | st.fixed_dictionaries({"request_percentage": _any, "controller_mutation_rate": _any})
_ip_values = st.fixed_dictionaries({next(iter(IP_QUOTA_KEYS)): st.integers(1, 2**31 - 1).map(float)})

quota_sets = st.builds(
    lambda clients, ips: QuotaSet({**clients, **ips}),
    st.dictionaries(_users | _clients | _pairs, _client_values, max_size=5),
    st.dictionaries(ips, _ip_values, max_size=2),
)
"""Quotas that a controller would store, up to 4.3 also infinite ones."""
