"""
Credentials that a client gets before it connects: tokens (OAUTHBEARER, AWS IAM) and Kerberos tickets (GSSAPI).

Where a token comes from is a `TokenSource`; `Tokens` keeps one until it has to be renewed. Its text never appears in a
message.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import math
import os
import re
import selectors
import signal
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

from .errors import CredentialsUnavailable, LibraryMissing, one_line
from .reach import network_reason
from .reading import content_of
from .security import Sasl, SaslMechanism, Secret, Tls

_MOST_BYTES: Final = 1 << 16
"""The longest token, and the longest answer with one in it."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)
"""Syntax of a token (RFC 6750, 2.1); any other text could end the field of the SASL message."""
_RENEWED_AT: Final = 0.8
"""
The part of a token's life after which another is fetched (Kafka: `sasl.login.refresh.window.factor`); sessions end
later.
"""
_LAST_SECOND: Final = 1e11
"""Upper bound of a time in seconds: a larger number is no time, and could not be shown as one."""
_SHOWN_CLAIMS: Final = ("iss", "aud", "sub", "scope")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token."""

    value: Secret
    expires_at: float | None
    """Unix time in seconds; None when it is not known."""


class TokenSource(Protocol):
    """Source of tokens."""

    @property
    def origin(self) -> str:
        """Description of the source for messages, such as `the token file /run/token`."""
        ...

    @property
    def keeps(self) -> bool:
        """True if a token is used until its renewal; False if each login asks for a new one."""
        ...

    def fetch(self, seconds: float) -> Token:
        """Return a token; takes about ``seconds`` at most. Raises `CredentialsUnavailable`."""
        ...


class Tokens:
    """The tokens of one source, for any number of threads. ``clock`` gives Unix time in seconds."""

    def __init__(self, source: TokenSource, clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._clock = clock
        self._lock = threading.Lock()
        self._last_token: Token | None = None
        self._renew_at = -math.inf

    @property
    def origin(self) -> str:
        """Description of the source."""
        return self._source.origin

    def current(self, seconds: float) -> Secret:
        """
        Return a token that has not expired, renewed after four fifths of its life.

        Fetching one takes about ``seconds`` at most.

        Raises `CredentialsUnavailable`.
        """
        with self._lock:
            token, now = self._last_token, self._clock()
            if token is not None and now < self._renew_at:
                return token.value
            try:
                token = self._source.fetch(seconds)
            except CredentialsUnavailable:
                if token is not None and now < (token.expires_at or -math.inf):
                    return token.value
                raise
            ends = token.expires_at
            if ends is not None and ends <= now:
                raise CredentialsUnavailable(
                    self.origin,
                    f"its token expired at {datetime.fromtimestamp(ends, UTC):%Y-%m-%dT%H:%M:%SZ}: "
                    "renew it, or set this machine's clock",
                )
            self._last_token, self._renew_at = token, -math.inf
            if self._source.keeps and ends is not None:
                self._renew_at = now + _RENEWED_AT * (ends - now)
            return token.value

    def refused(self) -> str:
        """Drop the last token, which a broker refused. Return its claims, or an empty text if they cannot be read."""
        with self._lock:
            token, self._last_token = self._last_token, None
            self._renew_at = -math.inf
        claims = _claims(token.value.reveal()) if token else {}
        claim_texts = (f"{name} {claims[name]}" for name in _SHOWN_CLAIMS if name in claims)
        return one_line(", ".join(claim_texts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """Tokens of an issuer, for a client id and its secret (OAuth 2.0, RFC 6749, 4.4)."""

    url: str
    """The token endpoint, `https` or `http`."""
    client_id: str
    client_secret: Secret
    scope: str | None = None
    tls: Tls = field(default_factory=Tls)
    keeps: bool = True

    @property
    def origin(self) -> str:
        """The endpoint without its query."""
        return f"the token endpoint {self.url.partition('?')[0]}"

    def fetch(self, seconds: float) -> Token:
        """Ask the endpoint for a token; redirects are not followed."""
        secret = self.client_secret.reveal()
        login = ":".join(map(urllib.parse.quote_plus, (self.client_id, secret)))
        form = {"grant_type": "client_credentials"}
        if self.scope:
            form["scope"] = self.scope
        request = urllib.request.Request(  # noqa: S310 - the configuration allows http and https only
            self.url,
            data=urllib.parse.urlencode(form).encode(),
            headers={
                "Authorization": f"Basic {base64.b64encode(login.encode()).decode()}",
                "Accept": "application/json",
            },
        )
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=self.tls.context()), _NoRedirect)
        try:
            with contextlib.closing(opener.open(request, timeout=seconds)) as response:
                body = response.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            raise self._refused(error) from None
        except (OSError, HTTPException, UnicodeError) as error:
            raise CredentialsUnavailable(self.origin, _reason(error)) from None
        answer = _object(body)
        value = answer.get("access_token")
        if not isinstance(value, str):
            raise CredentialsUnavailable(self.origin, "its answer has no access_token: is this the token endpoint?")
        lifetime = _number(answer.get("expires_in"))
        ends = None if lifetime is None else time.time() + lifetime
        return _token(self.origin, value, ends)

    def _refused(self, error: urllib.error.HTTPError) -> CredentialsUnavailable:
        with error:
            try:
                answer = _object(error.read(_MOST_BYTES))
            except (OSError, HTTPException):
                answer = {}
        texts = (answer.get("error"), answer.get("error_description"))
        words = ": ".join(text for text in texts if isinstance(text, str))
        for secret in (self.client_secret.reveal(), self.client_id):
            words = words.replace(secret, "****") if secret else words
        return CredentialsUnavailable(
            self.origin,
            f"HTTP {error.code}{f' ({one_line(words)})' if words else ''}: "
            "check the client id, its secret and the scope",
        )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that treats a redirect as an error: the secret must not be sent elsewhere."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Refuse the redirect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """A token in a file that another program renews, such as a projected token of a service account in Kubernetes."""

    path: Path
    keeps: bool = False

    @property
    def origin(self) -> str:
        """The path of the file."""
        return f"the token file {self.path}"

    def fetch(self, seconds: float) -> Token:  # noqa: ARG002 - files are quick
        """Read the token from the file."""
        try:
            content = content_of(self.path, _MOST_BYTES)
        except OSError as error:
            reason = error.strerror or str(error)
            raise CredentialsUnavailable(self.origin, f"{reason[:1].lower()}{reason[1:]}") from None
        return _token(self.origin, content.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCommand:
    """
    A command that prints a token.

    It runs without a shell, and is killed with its children when it takes too long.
    """

    arguments: tuple[str, ...]
    keeps: bool = True

    @property
    def origin(self) -> str:
        """The program without its arguments, which may hold secrets."""
        return f"the token command {self.arguments[0]}"

    def fetch(self, seconds: float) -> Token:
        """Run the command, and return the token that it prints."""
        try:
            process = subprocess.Popen(  # noqa: S603 - the command is the operator's
                self.arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CredentialsUnavailable(self.origin, f"cannot be run: {reason.lower()}") from None
        with process:
            try:
                printed, complaint = _printed(process, seconds)
            except BaseException as error:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, TimeoutError):
                    raise
                raise CredentialsUnavailable(self.origin, f"has not ended within {seconds:g} s") from None
        if process.returncode != 0:
            words = one_line(complaint.decode("utf-8", "replace"))
            raise CredentialsUnavailable(
                self.origin, f"exit code {process.returncode}: {words or 'nothing on standard error'}"
            )
        return _token(self.origin, printed.decode(errors="replace"))


def _printed(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """
    Return the beginnings of standard output and error of a process.

    Raise ``TimeoutError`` if it does not end in time.
    """
    deadline = time.monotonic() + seconds
    output = {process.stdout: b"", process.stderr: b""}
    with selectors.DefaultSelector() as selector:
        for pipe in output:
            selector.register(cast("IO[bytes]", pipe), selectors.EVENT_READ, pipe)
        while selector.get_map():
            remaining = deadline - time.monotonic()
            ready = selector.select(remaining) if remaining > 0 else ()
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if data := os.read(key.fd, _MOST_BYTES):
                    output[key.data] = (output[key.data] + data)[: _MOST_BYTES + 1]
                else:
                    selector.unregister(key.fileobj)
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    return output[process.stdout], output[process.stderr]


@dataclass(frozen=True, slots=True, kw_only=True)
class MskIam:
    """
    Tokens of AWS's signer, made from the credentials that the AWS SDK finds.

    Variables, profile, role of a pod or machine.
    """

    region: str | None = None
    """Region of the cluster; None for the region of the environment or profile."""
    keeps: bool = True

    @property
    def origin(self) -> str:
        """The name of the signer."""
        return "AWS IAM"

    def fetch(self, seconds: float) -> Token:  # noqa: ARG002 - the SDK has its own times
        """Sign a token; the SDK asks AWS for credentials only if it has none that are valid."""
        signer = importlib.import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
        try:
            session = importlib.import_module("botocore.session").Session()
            named = self.region or os.environ.get("AWS_REGION")
            region = named or session.get_config_variable("region")
            has_credentials = session.get_credentials() is not None
            if region and has_credentials:
                value, ends_ms = signer.generate_auth_token(region)
        except Exception as error:  # noqa: BLE001 - the SDK's errors have no common base
            raise CredentialsUnavailable(self.origin, f"{type(error).__name__}: {error}") from None
        if not region:
            raise CredentialsUnavailable(self.origin, "no region: set it, or AWS_REGION")
        if not has_credentials:
            raise CredentialsUnavailable(
                self.origin, "no credentials: set AWS_PROFILE or AWS_ACCESS_KEY_ID, or give the machine or pod a role"
            )
        return _token(self.origin, value, ends_ms / 1000)


def check_library(sasl: Sasl) -> None:
    """Raise `LibraryMissing` where the mechanism needs a library that is not installed."""
    needed = {
        SaslMechanism.AWS_MSK_IAM: ("aws_msk_iam_sasl_signer", "msk"),
        SaslMechanism.GSSAPI: ("gssapi", "kerberos"),
    }
    module, extra = needed.get(sasl.mechanism, ("", ""))
    try:
        if module:
            importlib.import_module(module)
    except (ImportError, OSError):  # OSError: it is there, but Kerberos's is not
        raise LibraryMissing(module, extra) from None


def check_login(sasl: Sasl, seconds: float) -> None:
    """
    Raise `CredentialsUnavailable` if there are no credentials for a login, before a broker is asked.

    Takes about ``seconds`` at most.
    """
    if sasl.tokens is not None:
        sasl.tokens.current(seconds)
    if sasl.kerberos is None:
        return
    if sasl.kerberos.keytab is not None:
        # the library has no arguments for them; it renews the tickets of this keytab by itself
        os.environ["KRB5_CLIENT_KTNAME"] = f"FILE:{sasl.kerberos.keytab}"
        os.environ["KRB5CCNAME"] = f"MEMORY:{sasl.kerberos.keytab}"
    gssapi = importlib.import_module("gssapi")
    try:
        _ = gssapi.Credentials(usage="initiate").lifetime
    except gssapi.exceptions.GSSError as error:
        raise ticket_missing(error) from None


def ticket_missing(error: BaseException) -> CredentialsUnavailable:
    """Return an error with the message of Kerberos's library (`gssapi.exceptions.GSSError`), without its numbers."""
    words = str(error)
    statuses, minor = (
        getattr(error, "get_all_statuses", None),
        getattr(error, "min_code", 0),
    )
    if statuses and minor:
        words = "; ".join(statuses(minor, False)) or words  # noqa: FBT003 - positional in the library
    return CredentialsUnavailable(
        "Kerberos", f"{words}: check the keytab or run kinit, and see that the brokers are named as in their principals"
    )


def _token(origin: str, text: str, expires_at: float | None = None) -> Token:
    """Return the token in a text; its claim `exp` is its expiry unless the caller knows it."""
    value = text.strip()
    if len(value) > _MOST_BYTES or not _TOKEN.fullmatch(value):
        content = f"{len(value)} characters that are" if value else "nothing, which is"
        raise CredentialsUnavailable(origin, f"gave {content} no token (RFC 6750)")
    if expires_at is None:
        expires_at = _number(_claims(value).get("exp"))
    return Token(value=Secret(value), expires_at=expires_at)


def _number(value: object) -> float | None:
    """Return a time in seconds, which some issuers write as text; None for a value that is no time."""
    if not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if 0 <= seconds < _LAST_SECOND else None


def _claims(token: str) -> Mapping[str, Any]:
    """Return the claims of a JWT, unverified: the broker verifies them. Empty for other tokens."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - head, claims, signature
        return {}
    try:
        return _object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", document) if isinstance(document, dict) else {}


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}"
    if isinstance(reason, OSError | UnicodeError) and not isinstance(reason, ssl.SSLError):
        return network_reason(reason)
    return str(reason)
