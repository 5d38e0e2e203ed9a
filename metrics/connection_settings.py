"""
The settings of a connection to Kafka's Admin API, each declared once.

The configuration takes its descriptions and examples from here (`quotascope.exporter.config`), the command line its
flags, the environment its variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

PREFIX: Final = "QUOTASCOPE_"
"""The beginning of all variables of the environment."""


def variable(place: tuple[str, ...]) -> str:
    """
    Return the environment variable for a place: ``QUOTASCOPE_SERVER__PORT``.

    Two underscores between levels: Kubernetes sets ``QUOTASCOPE_SERVER_PORT`` of its own accord
    where a service is named ``quotascope-server``.
    """
    return PREFIX + "__".join(place).upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSetting:
    """A setting: its key, what it means, and its flag."""

    place: tuple[str, ...]
    """Keys of the configuration from the top, such as ``("kafka", "sasl", "username")``."""
    description: str
    """In the configuration."""
    examples: tuple[Any, ...] = ()
    mechanisms: tuple[str, ...] = ()
    """The mechanisms of SASL with which it has an effect; empty for any."""
    flag: str = ""
    """The option of commands; empty where there is none."""
    metavar: str = ""
    help: str = ""
    """Help of the flag: shorter than the description."""

    @property
    def key(self) -> str:
        """The key in its section."""
        return self.place[-1]

    @property
    def variable(self) -> str:
        """Name of its variable in the environment."""
        return variable(self.place)


_SASL: Final = ("kafka", "sasl")
_PASSWORDS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OAUTH: Final = ("OAUTHBEARER",)
_AWS: Final = ("AWS_MSK_IAM",)
_KERBEROS: Final = ("GSSAPI",)

BOOTSTRAP_SERVERS: Final = ConnectionSetting(
    place=("kafka", "bootstrap_servers"),
    description="Brokers to connect to first: a list, or HOST:PORT separated by commas.",
    examples=(["broker-1:9092", "broker-2:9092"],),
    flag="--bootstrap-servers",
    metavar="HOST:PORT,…",
    help="Brokers of the Kafka cluster, to connect to first.",
)
SECURITY_PROTOCOL: Final = ConnectionSetting(
    place=("kafka", "security_protocol"),
    description="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    flag="--security-protocol",
    metavar="PROTOCOL",
    help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
)
MECHANISM: Final = ConnectionSetting(
    place=(*_SASL, "mechanism"),
    description=(
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM (extra msk) or GSSAPI (Kerberos, extra "
        "kerberos)."
    ),
    flag="--sasl-mechanism",
    metavar="NAME",
    help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM or GSSAPI.",
)
USERNAME: Final = ConnectionSetting(
    place=(*_SASL, "username"),
    description="PLAIN, SCRAM: user name.",
    examples=("quotascope",),
    mechanisms=_PASSWORDS,
    flag="--sasl-username",
    metavar="NAME",
    help="PLAIN, SCRAM: user for Kafka.",
)
PASSWORD: Final = ConnectionSetting(
    place=(*_SASL, "password"),
    description="Password; either this or password_file.",
    examples=("${KAFKA_PASSWORD}",),
    mechanisms=_PASSWORDS,
)
PASSWORD_FILE: Final = ConnectionSetting(
    place=(*_SASL, "password_file"),
    description="The same, read from a file.",
    examples=("/run/secrets/kafka-password",),
    mechanisms=_PASSWORDS,
    flag="--sasl-password-file",
    metavar="FILE",
    help=f"File with the password. It can also be in {PASSWORD.variable}.",
)
TOKEN_URL: Final = ConnectionSetting(
    place=(*_SASL, "token_url"),
    description=(
        "OAUTHBEARER: token endpoint of an issuer that gives tokens for client_id and its secret; or else token_file "
        "or token_command."
    ),
    examples=("https://sso.corp/realms/kafka/protocol/openid-connect/token",),
    mechanisms=_OAUTH,
    flag="--sasl-token-url",
    metavar="URL",
    help="OAUTHBEARER: the issuer's token endpoint.",
)
CLIENT_ID: Final = ConnectionSetting(
    place=(*_SASL, "client_id"),
    description="quotascope's client id at the issuer; not Kafka's client.id.",
    examples=("quotascope",),
    mechanisms=_OAUTH,
    flag="--sasl-client-id",
    metavar="ID",
    help="OAUTHBEARER: client id at the issuer.",
)
CLIENT_SECRET: Final = ConnectionSetting(
    place=(*_SASL, "client_secret"),
    description="Its secret; either this or client_secret_file.",
    examples=("${CLIENT_SECRET}",),
    mechanisms=_OAUTH,
)
CLIENT_SECRET_FILE: Final = ConnectionSetting(
    place=(*_SASL, "client_secret_file"),
    description="The same, read from a file.",
    examples=("/run/secrets/client-secret",),
    mechanisms=_OAUTH,
    flag="--sasl-client-secret-file",
    metavar="FILE",
    help=f"OAUTHBEARER: file with its secret. It can also be in {CLIENT_SECRET.variable}.",
)
SCOPE: Final = ConnectionSetting(
    place=(*_SASL, "scope"),
    description="Scope to ask for, if the issuer wants one.",
    examples=("kafka",),
    mechanisms=_OAUTH,
    flag="--sasl-scope",
    metavar="SCOPE",
    help="OAUTHBEARER: scope to ask the issuer for.",
)
TOKEN_CA_FILE: Final = ConnectionSetting(
    place=(*_SASL, "token_ca_file"),
    description="PEM file of the authorities to trust for token_url. Without it: the system's.",
    examples=("/etc/quotascope/issuer-ca.pem",),
    mechanisms=_OAUTH,
)
TOKEN_FILE: Final = ConnectionSetting(
    place=(*_SASL, "token_file"),
    description="OAUTHBEARER: file with a token that something else renews; it is read for each login.",
    examples=("/var/run/secrets/kafka/token",),
    mechanisms=_OAUTH,
    flag="--sasl-token-file",
    metavar="FILE",
    help="OAUTHBEARER: file with a token, read for each login.",
)
TOKEN_COMMAND: Final = ConnectionSetting(
    place=(*_SASL, "token_command"),
    description="OAUTHBEARER: command that prints a token, as a list of words or one line. It runs without a shell.",
    examples=(["/usr/local/bin/kafka-token", "--audience", "kafka"],),
    mechanisms=_OAUTH,
    flag="--sasl-token-command",
    metavar="COMMAND",
    help="OAUTHBEARER: command that prints a token; it runs without a shell.",
)
REGION: Final = ConnectionSetting(
    place=(*_SASL, "region"),
    description=(
        "AWS_MSK_IAM: region of the cluster. Default: AWS_REGION, or that of the AWS profile. Credentials are those "
        "that the AWS SDK finds."
    ),
    examples=("eu-west-1",),
    mechanisms=_AWS,
    flag="--sasl-region",
    metavar="REGION",
    help="AWS_MSK_IAM: region of the cluster; else AWS_REGION.",
)
KEYTAB: Final = ConnectionSetting(
    place=(*_SASL, "keytab"),
    description=(
        "GSSAPI: keytab of the principal to log in as. Default: the ticket or keytab that KRB5CCNAME or "
        "KRB5_CLIENT_KTNAME names."
    ),
    examples=("/etc/quotascope/quotascope.keytab",),
    mechanisms=_KERBEROS,
    flag="--sasl-keytab",
    metavar="FILE",
    help="GSSAPI: keytab of the principal to log in as; else the ticket of kinit.",
)
SERVICE_NAME: Final = ConnectionSetting(
    place=(*_SASL, "service_name"),
    description="GSSAPI: first part of the brokers' principals, sasl.kerberos.service.name. Default: kafka.",
    examples=("kafka",),
    mechanisms=_KERBEROS,
)
CA_FILE: Final = ConnectionSetting(
    place=("kafka", "tls", "ca_file"),
    description="PEM file of the authorities to trust. Without it: the system's.",
    examples=("/etc/quotascope/ca.pem",),
    flag="--ca-file",
    metavar="FILE",
    help="PEM file of the authorities to trust for Kafka's TLS.",
)
SETTINGS: Final = tuple(value for value in globals().copy().values() if isinstance(value, ConnectionSetting))
"""All settings, in the order of their declaration, which is that of the flags."""
