"""The configuration: what can be set, how it is read, and what is said when it is wrong."""

from .cardinality import CardinalityConfig, Excluded
from .discovery import (
    DiscoveryConfig,
    FileDiscoveryConfig,
    FoundSourceConfig,
    KafkaDiscoveryConfig,
)
from .duration import seconds_of
from .kafka import KafkaConfig, SaslConfig
from .load import load_config
from .model import (
    DEFAULT_PORT,
    CollectionConfig,
    Config,
    LogConfig,
    LogFormat,
    LogLevel,
    ServerConfig,
)
from .otlp import OtlpCompression, OtlpConfig, OtlpProtocol, OtlpTlsConfig
from .override import Override, discovery_overrides, sources_override
from .section import TlsConfig, secret
from .source import BasicAuthConfig, Dialect, SourceConfig

__all__ = [
    "DEFAULT_PORT",
    "BasicAuthConfig",
    "CardinalityConfig",
    "CollectionConfig",
    "Config",
    "Dialect",
    "DiscoveryConfig",
    "Excluded",
    "FileDiscoveryConfig",
    "FoundSourceConfig",
    "KafkaConfig",
    "KafkaDiscoveryConfig",
    "LogConfig",
    "LogFormat",
    "LogLevel",
    "OtlpCompression",
    "OtlpConfig",
    "OtlpProtocol",
    "OtlpTlsConfig",
    "Override",
    "SaslConfig",
    "ServerConfig",
    "SourceConfig",
    "TlsConfig",
    "discovery_overrides",
    "load_config",
    "seconds_of",
    "secret",
    "sources_override",
]
