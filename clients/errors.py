"""
Errors between this program and a Kafka cluster.

::

    ClientError
    ├── InvalidConnection         settings that contradict one another, or files that cannot be used
    ├── LibraryMissing            the Kafka client library is not installed
    ├── UnsupportedByLibrary      the installed library is not one this adapter knows
    ├── AdminUnreachable          no connection to any of the servers
    │   └── TlsFailed             connected, but no TLS session
    ├── CredentialsUnavailable    no token or ticket to log in with
    ├── AuthenticationFailed      the user, the password, the token, the ticket or the mechanism was refused
    ├── PermissionMissing         authenticated, but not allowed; says which ACL is missing
    ├── AdminTimeout              connected, but no answer in time
    └── AdminRequestFailed        the cluster answered with another error
        ├── MutationThrottled     a quota on controller mutations refused it for now (error 89)
        └── UnsupportedByCluster  its brokers are too old for this request

Messages are one line, hold no secret, and say what to do where that is known.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from quotascope.metrics.errors import QuotascopeError
from quotascope.metrics.kafka.protocol import ErrorCode

_LONGEST_REASON = 300


class ClientError(QuotascopeError):
    """Base of all errors of this room."""

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own calls the constructor with the message: no other process could restore the error, and its pool
        # would hang
        return type(self).__new__, (type(self), *self.args), self.__dict__


class InvalidConnection(ClientError):
    """The settings of a connection cannot be used."""


class LibraryMissing(ClientError):
    """A Kafka client library is not installed; without an extra, pip installs the library by its name."""

    def __init__(self, library: str, extra: str = "") -> None:
        command = f"; in a clone of quotascope: pip install '.[{extra}]'" if extra else f": pip install {library}"
        super().__init__(f"{library} is not installed{command}")
        self.library = library
        self.extra = extra


class UnsupportedByLibrary(ClientError):
    """The installed library lacks something that the adapter calls."""

    def __init__(self, library: str, version: str, missing: str) -> None:
        super().__init__(f"{library} {version} lacks {missing}: install the version that quotascope was tested with")
        self.library = library
        self.version = version
        self.missing = missing


class AdminUnreachable(ClientError):
    """No server could be reached, or the connection was lost."""

    def __init__(self, servers: Sequence[str], reason: str) -> None:
        self.servers = tuple(servers)
        self.reason = one_line(reason)
        super().__init__(f"cannot reach Kafka at {', '.join(self.servers)}: {self.reason}")


class TlsFailed(AdminUnreachable):
    """A server was reached, but no TLS session came about."""


class CredentialsUnavailable(ClientError):
    """No token or ticket could be obtained, so that no broker was asked."""

    def __init__(self, origin: str, reason: str) -> None:
        self.origin = one_line(origin)
        self.reason = one_line(reason)
        super().__init__(f"cannot log in: {self.origin}: {self.reason}")


class AuthenticationFailed(ClientError):
    """The cluster refused the login; `credential` names what it refused, where that is not a user's password."""

    def __init__(self, username: str | None, mechanism: str | None, reason: str, credential: str | None = None) -> None:
        self.username = username
        self.mechanism = mechanism
        self.reason = one_line(reason)
        named = one_line(credential or f"user {one_line(username or '')!r}")
        client_text = f"{named} by SASL/{mechanism}" if mechanism else "this client"
        super().__init__(f"Kafka refused {client_text}: {self.reason}")


class PermissionMissing(ClientError):
    """
    A request for which the user lacks the permission.

    Args:
        request: Name of the request in Kafka's protocol.
        operation: Operation of the ACL that would allow it, on the cluster or on the topic.
        username: User that we logged in as; None without a login.
        topic: Topic that the ACL is about; None for the cluster.
        servers: Bootstrap servers that were asked, `host:port`.
        is_secured: Whether clients of these servers need settings for TLS or a login.

    """

    def __init__(
        self,
        *,
        request: str,
        operation: str,
        username: str | None,
        topic: str | None = None,
        servers: Sequence[str] = (),
        is_secured: bool = False,
    ) -> None:
        self.request = request
        self.operation = operation
        self.username = username
        self.topic = topic
        self.servers = tuple(servers)
        self.is_secured = is_secured
        super().__init__(f"{request} is not permitted; to grant it: {self.grant}")

    @property
    def grant(self) -> str:
        """
        The command that grants the permission.

        `admin.properties` stands for the settings of a user who may grant it.
        """
        words = ["kafka-acls.sh"]
        if self.servers:
            words += ["--bootstrap-server", shlex.quote(one_line(",".join(self.servers)))]
        if self.is_secured:
            words += ["--command-config", "admin.properties"]
        principal = shlex.quote(one_line(f"User:{self.username}")) if self.username else "User:…"
        words += ["--add", "--allow-principal", principal, "--operation", self.operation]
        words += ["--cluster"] if self.topic is None else ["--topic", shlex.quote(one_line(self.topic))]
        return " ".join(words)


class AdminTimeout(ClientError):
    """No answer in time."""

    def __init__(self, request: str, seconds: float) -> None:
        super().__init__(f"{request}: no answer within {seconds:g} s")
        self.request = request
        self.seconds = seconds


class AdminRequestFailed(ClientError):
    """The cluster refused a request for another reason than a missing permission."""

    def __init__(self, request: str, code: int | None, reason: str) -> None:
        self.request = request
        self.code = code
        self.reason = one_line(reason)
        number = "" if code is None else f" (error {code})"
        super().__init__(f"{request} failed{number}: {self.reason}")


class MutationThrottled(AdminRequestFailed):
    """
    A controller mutation was refused for its quota and may be tried again after `throttle_time_ms` (KIP-599).

    Kafka: `ThrottlingQuotaExceededException`. `message` is the broker's, None when it gave none.
    """

    def __init__(self, request: str, throttle_time_ms: int, message: str | None) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.message = message
        reason = message or "the throttling quota has been exceeded"
        super().__init__(request, ErrorCode.THROTTLING_QUOTA_EXCEEDED, f"{reason} (wait {throttle_time_ms} ms)")

    def after(self, waited_ms: int) -> MutationThrottled:
        """Return the same refusal with the rest of its throttle time after a wait in ms."""
        left_ms = max(0, self.throttle_time_ms - waited_ms)
        return MutationThrottled(self.request, left_ms, self.message)


class UnsupportedByCluster(AdminRequestFailed):
    """
    The brokers do not know a request, which was added in a later release of Kafka.

    Kafka: `UnsupportedVersionException`. `since` is that release, empty where it is not known.
    """

    def __init__(self, request: str, since: str = "") -> None:
        self.since = since
        added = f", which came with Kafka {since}" if since else ""
        super().__init__(request, ErrorCode.UNSUPPORTED_VERSION, f"the cluster does not know this request{added}")


def one_line(text: str) -> str:
    """Return a text from outside, made fit for a log: without line breaks or control characters, and cut."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    words = " ".join(printable.split())
    return words if len(words) <= _LONGEST_REASON else words[: _LONGEST_REASON - 1] + "…"
