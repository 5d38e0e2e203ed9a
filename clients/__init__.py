"""
Client of a cluster's quotas through Kafka's Admin API, independent of the library that sends the requests.

`open_quota_admin(connection)` gives a `QuotaAdmin`; all errors are `ClientError`.
"""

from .adapter import open_quota_admin
from .errors import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
    CredentialsUnavailable,
    InvalidConnection,
    LibraryMissing,
    MutationThrottled,
    PermissionMissing,
    TlsFailed,
    UnsupportedByLibrary,
)
from .quota_admin import (
    BrokerSettings,
    ClusterDescription,
    ConfigOrigin,
    ConfiguredQuota,
    Entity,
    Node,
    QuorumVoters,
    QuotaAdmin,
    QuotaChange,
    RegisteredBrokers,
)
from .security import Connection, Kerberos, Sasl, SaslMechanism, Secret, SecurityProtocol, Tls

__all__ = [
    "AdminRequestFailed",
    "AdminTimeout",
    "AdminUnreachable",
    "AuthenticationFailed",
    "BrokerSettings",
    "ClientError",
    "ClusterDescription",
    "ConfigOrigin",
    "ConfiguredQuota",
    "Connection",
    "CredentialsUnavailable",
    "Entity",
    "InvalidConnection",
    "Kerberos",
    "LibraryMissing",
    "MutationThrottled",
    "Node",
    "PermissionMissing",
    "QuorumVoters",
    "QuotaAdmin",
    "QuotaChange",
    "RegisteredBrokers",
    "Sasl",
    "SaslMechanism",
    "Secret",
    "SecurityProtocol",
    "Tls",
    "TlsFailed",
    "UnsupportedByLibrary",
    "open_quota_admin",
]
