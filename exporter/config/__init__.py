"""The configuration: what can be set, how it is read, and what is said when it is wrong."""

from .cardinality import CardinalityConfig, Excluded
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
from .override import Override, sources_override
from .section import TlsConfig, secret
from .source import BasicAuthConfig, Dialect, SourceConfig

__all__ = [
    "DEFAULT_PORT",
    "BasicAuthConfig",
    "CardinalityConfig",
    "CollectionConfig",
    "Config",
    "Dialect",
    "Excluded",
    "KafkaConfig",
    "LogConfig",
    "LogFormat",
    "LogLevel",
    "Override",
    "SaslConfig",
    "ServerConfig",
    "SourceConfig",
    "TlsConfig",
    "load_config",
    "secret",
    "sources_override",
]
