"""The tables of APIs, versions, codes and keys are those of Kafka's classes, entry by entry."""

import pytest
from tests.facts.kafka import RELEASES, facts, key_of
from tools.replay_check.log import EXEMPT_ON_CONTROLLERS

from quotascope.clients.throttling import client_waits, first_waiting_version, has_throttle_time
from quotascope.clients.throttling.mutation import RetryOptions
from quotascope.exporter.limits import NodeSettings
from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.controller_mutation import MutationApi
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.protocol import ApiKey, ErrorCode
from quotascope.metrics.kafka.release import METADATA_LEVELS, KafkaRelease
from quotascope.metrics.kafka.validation import CLIENT_QUOTA_KEYS, IP_QUOTA_KEYS
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pipeline import releases as layouts
from quotascope.pipeline.history.charges import EXEMPT_APIS
from quotascope.pipeline.replay import frame
from quotascope.pipeline.request_log import messages

NEWEST = RELEASES[-1]
releases = pytest.mark.parametrize("release", RELEASES, ids=str)


def keys_of(*names: str) -> set[int]:
    return {key_of(name) for name in names}


@releases
def test_numbers_of_apis(release: KafkaRelease) -> None:
    """Every API of a release is known by its name and number; those new in 4.4 are not in 4.3."""
    theirs = {name: api["key"] for name, api in facts(release)["apis"].items()}
    ours = {api.name: api.value for api in ApiKey}
    newer = set() if release == NEWEST else {"STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE", "UNREGISTER_CONTROLLER"}
    assert theirs == {name: key for name, key in ours.items() if name not in newer}
    assert ApiKey.CREATE_TOPICS.request_name == "CreateTopics"


@releases
@pytest.mark.parametrize("api", ApiKey)
def test_versions_that_make_a_client_wait(release: KafkaRelease, api: ApiKey) -> None:
    """A client waits after the versions of a response for which `shouldClientThrottle` says so."""
    theirs = facts(release)["apis"].get(api.name)
    if theirs is None:
        assert api.value >= ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
        return
    versions = range(theirs["lowest"], theirs["highest"] + 1)
    waits = [version for version in versions if client_waits(api, version, release)]
    assert waits == theirs["waits"]
    assert has_throttle_time(api) == theirs["throttle_time"]


SINCE_1 = [
    "DESCRIBE_ACLS",
    "CREATE_ACLS",
    "DELETE_ACLS",
    "ALTER_REPLICA_LOG_DIRS",
    "DESCRIBE_LOG_DIRS",
    "CREATE_DELEGATION_TOKEN",
    "RENEW_DELEGATION_TOKEN",
    "EXPIRE_DELEGATION_TOKEN",
    "DESCRIBE_DELEGATION_TOKEN",
]
"""
APIs whose first waiting version is 1 (KIP-219 and the KIPs of each).

Facts cannot show it: the oldest supported version waits.
"""


@pytest.mark.parametrize("api", ApiKey)
def test_first_version_that_makes_a_client_wait(api: ApiKey) -> None:
    """
    The first version that makes a client wait is exact if older ones are supported that do not.

    Otherwise it is not later than the oldest.
    """
    theirs = facts(RELEASES[0])["apis"].get(api.name)
    first = first_waiting_version(api, RELEASES[0])
    if theirs is None or not theirs["waits"]:
        assert first is None
    elif theirs["waits"][0] > theirs["lowest"]:
        assert first == theirs["waits"][0]
    else:
        assert first is not None
        assert first <= theirs["lowest"]
        if api.name in SINCE_1:
            assert first == 1


@releases
def test_exempt_apis(release: KafkaRelease) -> None:
    """The exempt APIs are those that Kafka's source exempts on each node, or on controllers for forwarded requests."""
    known = facts(release)
    broker, controller = known["exempt"]["broker"], known["exempt"]["controller"]
    ways = {name: {side[name] for side in (broker, controller) if name in side} for name in {*broker, *controller}}
    always = {name for name, found in ways.items() if found == {"always"}}
    without_zookeeper = {name for name, api in known["apis"].items() if api["highest"] < 0 and api["among_brokers"]}
    assert set(EXEMPT_APIS) == keys_of(*always, *without_zookeeper)
    split = {name for name in controller if controller[name] == "always" and broker.get(name) == "never"}
    assert set(EXEMPT_ON_CONTROLLERS) == keys_of(*split)
    mixed = {name for name, found in ways.items() if "mixed" in found}
    assert mixed == {"PRODUCE", "FETCH"}


@releases
def test_mutations_are_refused_since(release: KafkaRelease) -> None:
    """The first versions whose clients understand a refusal are those for which a controller requests a quota."""
    theirs = facts(release)["strict_since"]
    assert {api.name: api.strict_since for api in MutationApi} == theirs
    by_key = {key_of(name): version for name, version in theirs.items()}
    assert by_key == frame.STRICT_SINCE
    assert set(messages.TOPICS_OF) == set(by_key)


def test_apis_that_fetch() -> None:
    """The APIs by which consumers fetch are those of the release."""
    assert set(QuotaType.FETCH.apis) == keys_of("FETCH", "SHARE_FETCH")


def test_oldest_versions_of_a_layout() -> None:
    """
    Versions that 4.0 dropped are below what the release supports.

    The other APIs began above 0 or lost drafts only.
    """
    theirs = {api["key"]: api["lowest"] for api in facts(NEWEST)["apis"].values()}
    ours = layouts._OLDEST_IN_4_0
    assert ours == {key: theirs[key] for key in ours}
    others = {key for key, lowest in theirs.items() if lowest > 0} - set(ours)
    assert others == keys_of(
        "WRITE_TXN_MARKERS",
        "ALTER_PARTITION",
        "SHARE_GROUP_HEARTBEAT",
        "SHARE_GROUP_DESCRIBE",
        "SHARE_FETCH",
        "SHARE_ACKNOWLEDGE",
    )
    gone = {api["key"] for api in facts(NEWEST)["apis"].values() if api["highest"] < 0}
    assert set(layouts._NO_LONGER_IN_4_0) == gone


@releases
def test_codes_of_errors(release: KafkaRelease) -> None:
    """Each error has Kafka's name and code."""
    theirs = facts(release)["errors"]
    assert {error.name: error.value for error in ErrorCode} == {error.name: theirs[error.name] for error in ErrorCode}


@releases
def test_keys_of_quotas(release: KafkaRelease) -> None:
    """The keys that entities may have, with the types of their values, are those of `QuotaConfig`."""
    known = facts(release)
    clients = {key: kind.name for key, kind in CLIENT_QUOTA_KEYS.items()}
    assert clients == known["client_quotas"]
    assert {kind.quota_key for kind in QuotaType} == set(clients)
    assert {key: kind.name for key, kind in IP_QUOTA_KEYS.items()} == known["ip_quotas"]


@releases
def test_defaults_of_windows(release: KafkaRelease) -> None:
    """The defaults of windows are Kafka's own for brokers and for clients."""
    defaults = facts(release)["defaults"]
    settings, windows, metric = NodeSettings(), WindowConfig(), MetricConfig()
    for config, ours in {
        "quota.window.num": windows.samples,
        "quota.window.size.seconds": windows.window_seconds,
        "controller.quota.window.num": settings.controller_quota_samples,
        "controller.quota.window.size.seconds": settings.controller_quota_window_seconds,
        "metrics.num.samples": metric.samples,
        "metrics.sample.window.ms": metric.time_window_ms,
        "default.api.timeout.ms": RetryOptions().timeout_ms,
    }.items():
        assert ours == defaults[config]
    assert settings.quota_window_seconds == defaults["quota.window.size.seconds"]
    same = {name: value for name, value in defaults.items() if name.endswith((".window.num", ".window.size.seconds"))}
    assert set(same.values()) == {windows.samples, windows.window_seconds}


@releases
def test_levels_of_the_metadata_version(release: KafkaRelease) -> None:
    """The newest level of each release is that of `MetadataVersion`, and a broker's newest shows its release."""
    known = facts(release)
    newest: dict[tuple[int, int], int] = {}
    for name, level in known["metadata_versions"].items():
        major, minor = map(int, name.partition("-")[0].split("."))
        newest[major, minor] = max(level, newest.get((major, minor), 0))
    ours = {(major, minor): level for level, major, minor in METADATA_LEVELS}
    upto = (release.major, release.minor)
    assert {of: level for of, level in ours.items() if of <= upto} == {
        of: level for of, level in newest.items() if of <= upto
    }
    production = known["metadata_versions"][known["latest_production"]]
    assert KafkaRelease.of_metadata_version(production) == release
    assert KafkaRelease.of_metadata_version(6) is None
    assert sorted(METADATA_LEVELS, reverse=True) == list(METADATA_LEVELS)


def test_kinds_of_the_kernels() -> None:
    """The kernels' numbers of kinds go from 0 on, one for each quota type."""
    numbers = (frame.PRODUCE, frame.FETCH, frame.REQUEST, frame.MUTATION)
    assert sorted(numbers) == list(range(frame.KINDS))
    assert len(QuotaType) == frame.KINDS
