"""The users of the test brokers, their passwords, and how a broker gets them."""

from typing import Final

USERS: Final = {
    "admin": "admin-pw",
    "alice": "alice-pw",
    "bob": "bob-pw",
    "carol": "carol-pw",
    "svc:team a": "svc-pw",  # percent-encoded in MBean names: svc%3Ateam%20a
    "svc:team b": "svc-pw",
    "mallory": "mallory-pw",  # gets no rights where there is an authorizer
}
SUPER_USERS: Final = "User:admin;User:ANONYMOUS"  # nodes and the plaintext listener are ANONYMOUS
SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def plain_jaas() -> str:
    """Return the login module of SASL/PLAIN; a key with `:` or a space works when it is quoted as a whole."""
    users = " ".join(f'"user_{name}"="{password}"' for name, password in USERS.items())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"


def scram_jaas() -> str:
    """Return the login module of SASL/SCRAM; the credentials are records of the metadata log (see `scram_records`)."""
    return "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def scram_records() -> list[str]:
    """Arguments for `kafka-storage format` that create every user with every SCRAM mechanism."""
    return [
        argument
        for mechanism in SCRAM_MECHANISMS
        for name, password in USERS.items()
        for argument in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
    ]
