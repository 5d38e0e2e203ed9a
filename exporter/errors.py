"""
The errors of the exporter.

::

    ExporterError
    ├── ConfigError            the configuration cannot be used; says where and how to mend it
    ├── McpMissing             the extra that answers assistants is not installed
    ├── CannotListen           the address of the HTTP server cannot be had
    ├── InvalidQuery           a query parameter of the page or of its JSON is none that there is
    ├── DiscoveryError         the nodes of the cluster could not be found; those found last stay
    ├── LimitsError            the configured limits could not be read
    │   ├── LimitsDenied       not allowed to read them
    │   └── LimitsUnsupported  the cluster is too old to report them
    └── SourceError            one source could not be read; the others go on
        ├── SourceUnreachable  no connection, or none in time
        │   └── AnswerLate     no whole answer in time, though a smaller one may come
        ├── SourceDenied       wrong credentials or not allowed
        └── SourceUnreadable   an answer that is not what the dialect promises
            ├── SourceNotRead  an answer as it should be, by which the agent could not read something
            └── AnswerTooLong  an answer longer than it may be
"""

from __future__ import annotations

import errno
import os
import ssl
from typing import Final

from quotascope.metrics.errors import InvalidInput, QuotascopeError


class ExporterError(QuotascopeError):
    """Base of all errors of the exporter; the message says what was wrong, where, and what to do."""


WITHOUT_FILE: Final = "configuration"
"""Subject of a configuration that flags and environment variables make, without a file."""


class ConfigError(InvalidInput, ExporterError):
    """The configuration cannot be used."""

    @property
    def is_of_usage(self) -> bool:  # type: ignore[override] # it depends on where the configuration is from
        """Whether an option or the lack of a file is at fault: what is wrong or missing is on the command line."""
        return self.subject == WITHOUT_FILE or self.subject.startswith("--")


class McpMissing(ExporterError):
    """The extra that answers assistants is not installed."""


class CannotListen(ExporterError):
    """The address of the HTTP server cannot be had."""


class InvalidQuery(ExporterError):
    """A query parameter of the page or of its JSON has a value that there is not."""


class DiscoveryError(ExporterError):
    """The nodes of the cluster could not be found."""


class LimitsError(ExporterError):
    """The configured limits could not be read."""


class LimitsDenied(LimitsError):
    """Wrong credentials, or an ACL that is missing; the message says which."""


class LimitsUnsupported(LimitsError):
    """The cluster's release of Kafka does not report quotas."""


class SourceError(ExporterError):
    """One source could not be read."""


class SourceUnreachable(SourceError):
    """No connection to the source, or no answer in time."""


class AnswerLate(SourceUnreachable):
    """The answer was not complete in time, though a smaller one may be."""


class SourceDenied(SourceError):
    """The source refused the credentials, or what was asked for."""


class SourceUnreadable(SourceError):
    """The source answered something that its dialect does not promise."""


class SourceNotRead(SourceUnreadable):
    """The agent answered as it should, but that it could not read something."""


class AnswerTooLong(SourceUnreadable):
    """The answer is longer than it may be, though it may be read in parts."""


def os_reason(error: OSError) -> str:
    """
    Return the reason alone, such as ``Connection refused``.

    Asyncio puts a text of its own, with the address, in its place.
    """
    if isinstance(error, ssl.SSLError):  # its errno is not the system's
        return error.reason or str(error)
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return error.strerror or str(error)
