"""The quota engine of Apache Kafka, in plain Python, and the catalogue of what is exposed about quotas."""

from .clock import Clock, SteadyClock, wall_clock_ms
from .config import MetricConfig, RecordingLevel, Tags
from .cumulative import CumulativeCount, CumulativeSum, Value
from .entities import DEFAULT, DefaultType, Level, QuotaEntity
from .errors import (
    DuplicateMetric,
    InvalidConfig,
    InvalidHierarchy,
    MalformedName,
    MetricsError,
    NotMeasurable,
    QuotaViolation,
    ThrottlingQuotaExceeded,
)
from .expiry import ExpiryThread
from .jmx import mbean_name, parse_object_name, quote_tag_value, unquote_tag_value
from .jmx_filter import JmxFilter
from .jmx_reporter import JmxReporter, MBean
from .meter import Meter
from .metric import KafkaMetric
from .metric_name import MetricName, MetricNameTemplate
from .numbers import INT_MAX, LONG_MAX, jround, tdiv, to_i32
from .quota import Quota
from .quota_type import QuotaType
from .rate import Rate
from .registry import Registry
from .reporter import MetricsReporter
from .rules import NO_RULE, QuotaRules, Resolution, RuleSnapshot, RuleTable
from .sampled import Sample, SampledStat
from .sanitizer import desanitize, sanitize
from .sensor import Sensor
from .simple_rate import SimpleRate
from .stat import CompoundStat, Gauge, Measurable, Measured, NamedMeasurable, Stat
from .time_unit import TimeUnit
from .token_bucket import TokenBucket
from .windowed import Avg, Max, Min, WindowedCount, WindowedSum

__all__ = [
    "DEFAULT",
    "INT_MAX",
    "LONG_MAX",
    "NO_RULE",
    "Avg",
    "Clock",
    "CompoundStat",
    "CumulativeCount",
    "CumulativeSum",
    "DefaultType",
    "DuplicateMetric",
    "ExpiryThread",
    "Gauge",
    "InvalidConfig",
    "InvalidHierarchy",
    "JmxFilter",
    "JmxReporter",
    "KafkaMetric",
    "Level",
    "MBean",
    "MalformedName",
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
    "NamedMeasurable",
    "NotMeasurable",
    "Quota",
    "QuotaEntity",
    "QuotaRules",
    "QuotaType",
    "QuotaViolation",
    "Rate",
    "RecordingLevel",
    "Registry",
    "Resolution",
    "RuleSnapshot",
    "RuleTable",
    "Sample",
    "SampledStat",
    "Sensor",
    "SimpleRate",
    "Stat",
    "SteadyClock",
    "Tags",
    "ThrottlingQuotaExceeded",
    "TimeUnit",
    "TokenBucket",
    "Value",
    "WindowedCount",
    "WindowedSum",
    "desanitize",
    "jround",
    "mbean_name",
    "parse_object_name",
    "quote_tag_value",
    "sanitize",
    "tdiv",
    "to_i32",
    "unquote_tag_value",
    "wall_clock_ms",
]
