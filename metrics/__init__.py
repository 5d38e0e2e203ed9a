"""
The quota engine of Apache Kafka, in Python, and the catalog of what is exposed about quotas.

The engine is also a library for your own programs, such as simulations and tests of clients. It imports the standard library only (`batch`
also NumPy), and time is an argument:

>>> now_ms = 1_795_000_000_000
>>> quotas = QuotaManagers(Registry(), now_ms)
>>> quotas.update_quota(QuotaType.PRODUCE, QuotaEntity(user="alice"), 100_000)
>>> alice = Principal("alice")
>>> quotas.produce.record_and_get_throttle_time(alice, "etl", 500_000, now_ms)
0
>>> quotas.produce.record_and_get_throttle_time(alice, "etl", 1_000_000, now_ms + 1_000)  # 150 kB/s over 10 s: 5 s too fast
5000
>>> quotas.produce.decide(alice, "etl").level.name
'USER'

Of Kafka's classes, with the same results in the last bit:

* statistics (`Rate`, `TokenBucket`, `Meter`, `Percentiles`, `Frequencies`, ...), in a `Sensor` of a `Registry`; `batch` records arrays of values
* client quotas: `QuotaManagers` of a node, `BrokerQuotas` for whole requests, `QuotaCallback`
* other quotas: `ConnectionQuotas` (KIP-612), `ReplicationQuotas`, `TieredStorageQuotas` (KIP-956)
* names: `Principal`, `mbean_name`, `telemetry_name` (KIP-714); metrics as MBeans: `JmxReporter`
* the controller's checks of quotas: `validate_alteration`, `validate_request`

`BurstSpreadingRate` is a policy that Kafka does not have.

Derive classes of your own from `Measurable`, `Stat`, `CompoundStat`, `SampledStat`, `Rate`, `BinScheme`, `MetricsReporter`, `QuotaCallback` and
`ThrottleCallback`. Where the engine is `compiled`, to make an object of a class derived from most others raises TypeError.
"""

from .broker_quotas import BrokerQuotas, ClientRequest, Instant
from .burst_spreading import BurstSpreadingRate
from .byte_rate_quota import ByteRateQuota
from .callback_rules import CUSTOM_FLAG, CallbackRules, CallbackTags
from .channel import Channel, ChannelThrottle, MuteEvent, MuteState
from .client_quota_manager import UNLIMITED, ClientQuotaManager
from .client_sensors import ClientSensors, EntityTags
from .clock import Clock, SteadyClock, wall_clock_ms
from .combination import (
    Decision,
    combine_controller,
    combine_fetch,
    combine_forwarded_response,
    combine_produce,
    combine_request,
)
from .config import MetricConfig, RecordingLevel, Tags
from .connection_counts import ConnectionCounts
from .connection_quotas import ConnectionQuotas
from .controller_mutation import ControllerMutationQuotaManager, MutationApi
from .cumulative import CumulativeCount, CumulativeSum, Value
from .delay_queue import DelayQueue, ThrottledChannel
from .delayed_close import DelayedClose
from .entities import (
    DEFAULT,
    LEVEL_NAMES,
    LEVELS_LEGEND,
    NO_RULE,
    DefaultType,
    Level,
    QuotaEntity,
    QuotaType,
    Resolution,
    spelled,
    spelled_name,
)
from .errors import (
    ConnectionThrottled,
    DuplicateMetric,
    IllegalMuteTransition,
    InvalidConfig,
    InvalidHierarchy,
    MalformedBatch,
    MalformedName,
    MetricsError,
    NotMeasurable,
    QuotaViolation,
    ThrottlingQuotaExceeded,
    TooManyConnections,
    UnknownConnection,
    WrongStatistic,
)
from .expiry import ExpiryThread
from .frequencies import Frequencies, Frequency
from .histogram import BinScheme, ConstantBins, HistogramSample, HistogramWindows, LinearBins
from .host_address import host_address
from .jmx import mbean_name, parse_object_name, quote_tag_value, unquote_tag_value
from .jmx_reporter import JmxFilter, JmxReporter, MBean
from .kafka_release import KAFKA_4_4, NEWEST_RELEASE, KafkaRelease
from .meter import Meter
from .metric import KafkaMetric
from .metric_name import MetricName, MetricNameTemplate
from .mutation_quota import UNBOUNDED, MutationQuota, PermissiveMutationQuota, StrictMutationQuota
from .native import compiled
from .numbers import INT_MAX, LONG_MAX, jround, tdiv, to_i32
from .percentiles import BucketSizing, Percentile, Percentiles
from .principal import ANONYMOUS, Principal
from .quota import Quota
from .quota_callback import QuotaCallback
from .quota_factory import QuotaConfig, QuotaManagers
from .quota_validation import (
    CLIENT_QUOTA_KEYS,
    IP_QUOTA_KEYS,
    QuotaProblem,
    QuotaValueType,
    is_address,
    validate_alteration,
    validate_request,
)
from .rate import Rate, SimpleRate, TimeUnit
from .reaper import ThrottledChannelReaper
from .reaper_thread import ReaperThread
from .registry import Registry
from .replication_quotas import (
    ALL_REPLICAS,
    ReplicationQuotaManager,
    ReplicationQuotas,
    ReplicationQuotaType,
    parse_throttled_replicas,
)
from .reporter import MetricsReporter
from .request_quota_manager import PERCENT_PER_NANO, RequestQuotaManager
from .rules import QuotaRules, RuleSnapshot, RuleTable
from .sampled import Sample, SampledStat
from .sanitizer import desanitize, sanitize
from .sensor import Sensor
from .stat import CompoundStat, Gauge, Measurable, Measured, NamedMeasurable, Stat
from .telemetry_names import TELEMETRY_PREFIX, TelemetryKind, telemetry_kind, telemetry_labels, telemetry_name
from .throttle_callback import ThrottleCallback
from .throttle_time import (
    bounded_rate_throttle_time_ms,
    narrow,
    rate_formula_ms,
    rate_throttle_time_ms,
    token_formula_ms,
    token_throttle_time_ms,
)
from .tiered_storage import RLMQuotaManager, RLMQuotaMetrics, RLMQuotaType, TieredStorageQuotas
from .token_bucket import TokenBucket
from .window_config import ManagerConfig, WindowConfig
from .windowed import Avg, Max, Min, WindowedCount, WindowedSum

__all__ = [
    "ALL_REPLICAS",
    "ANONYMOUS",
    "CLIENT_QUOTA_KEYS",
    "CUSTOM_FLAG",
    "DEFAULT",
    "INT_MAX",
    "IP_QUOTA_KEYS",
    "KAFKA_4_4",
    "LEVELS_LEGEND",
    "LEVEL_NAMES",
    "LONG_MAX",
    "NEWEST_RELEASE",
    "NO_RULE",
    "PERCENT_PER_NANO",
    "TELEMETRY_PREFIX",
    "UNBOUNDED",
    "UNLIMITED",
    "Avg",
    "BinScheme",
    "BrokerQuotas",
    "BucketSizing",
    "BurstSpreadingRate",
    "ByteRateQuota",
    "CallbackRules",
    "CallbackTags",
    "Channel",
    "ChannelThrottle",
    "ClientQuotaManager",
    "ClientRequest",
    "ClientSensors",
    "Clock",
    "CompoundStat",
    "ConnectionCounts",
    "ConnectionQuotas",
    "ConnectionThrottled",
    "ConstantBins",
    "ControllerMutationQuotaManager",
    "CumulativeCount",
    "CumulativeSum",
    "Decision",
    "DefaultType",
    "DelayQueue",
    "DelayedClose",
    "DuplicateMetric",
    "EntityTags",
    "ExpiryThread",
    "Frequencies",
    "Frequency",
    "Gauge",
    "HistogramSample",
    "HistogramWindows",
    "IllegalMuteTransition",
    "Instant",
    "InvalidConfig",
    "InvalidHierarchy",
    "JmxFilter",
    "JmxReporter",
    "KafkaMetric",
    "KafkaRelease",
    "Level",
    "LinearBins",
    "MBean",
    "MalformedBatch",
    "MalformedName",
    "ManagerConfig",
    "Max",
    "Measurable",
    "Measured",
    "Meter",
    "MetricConfig",
    "MetricName",
    "MetricNameTemplate",
    "MetricsError",
    "MetricsReporter",
    "Min",
    "MutationApi",
    "MutationQuota",
    "MuteEvent",
    "MuteState",
    "NamedMeasurable",
    "NotMeasurable",
    "Percentile",
    "Percentiles",
    "PermissiveMutationQuota",
    "Principal",
    "Quota",
    "QuotaCallback",
    "QuotaConfig",
    "QuotaEntity",
    "QuotaManagers",
    "QuotaProblem",
    "QuotaRules",
    "QuotaType",
    "QuotaValueType",
    "QuotaViolation",
    "RLMQuotaManager",
    "RLMQuotaMetrics",
    "RLMQuotaType",
    "Rate",
    "ReaperThread",
    "RecordingLevel",
    "Registry",
    "ReplicationQuotaManager",
    "ReplicationQuotaType",
    "ReplicationQuotas",
    "RequestQuotaManager",
    "Resolution",
    "RuleSnapshot",
    "RuleTable",
    "Sample",
    "SampledStat",
    "Sensor",
    "SimpleRate",
    "Stat",
    "SteadyClock",
    "StrictMutationQuota",
    "Tags",
    "TelemetryKind",
    "ThrottleCallback",
    "ThrottledChannel",
    "ThrottledChannelReaper",
    "ThrottlingQuotaExceeded",
    "TieredStorageQuotas",
    "TimeUnit",
    "TokenBucket",
    "TooManyConnections",
    "UnknownConnection",
    "Value",
    "WindowConfig",
    "WindowedCount",
    "WindowedSum",
    "WrongStatistic",
    "bounded_rate_throttle_time_ms",
    "combine_controller",
    "combine_fetch",
    "combine_forwarded_response",
    "combine_produce",
    "combine_request",
    "compiled",
    "desanitize",
    "host_address",
    "is_address",
    "jround",
    "mbean_name",
    "narrow",
    "parse_object_name",
    "parse_throttled_replicas",
    "quote_tag_value",
    "rate_formula_ms",
    "rate_throttle_time_ms",
    "sanitize",
    "spelled",
    "spelled_name",
    "tdiv",
    "telemetry_kind",
    "telemetry_labels",
    "telemetry_name",
    "to_i32",
    "token_formula_ms",
    "token_throttle_time_ms",
    "unquote_tag_value",
    "validate_alteration",
    "validate_request",
    "wall_clock_ms",
]
