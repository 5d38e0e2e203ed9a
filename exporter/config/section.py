"""The common parts of all sections of the configuration: strictness, times, secrets, TLS."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FilePath,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from quotascope.clients.errors import ClientError
from quotascope.clients.reading import content_of
from quotascope.clients.security import Secret, Tls
from quotascope.metrics.connection_settings import CA_FILE, ConnectionSetting

from ..errors import ConfigError

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)


def _with_unit(value: object) -> object:
    """Return the seconds of a text such as ``500ms`` or ``7``; anything but a text as it is."""
    if not isinstance(value, str):
        return value
    if match := _DURATION.fullmatch(value):
        return float(match[1]) * _UNITS[match[2]]
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"is not a time such as 500ms, 5s or 1m: {value[:60]!r}") from None


Seconds = Annotated[
    float,
    BeforeValidator(_with_unit),
    Field(gt=0, le=86_400, allow_inf_nan=False),
]
"""A number of seconds, or a text such as ``500ms``, ``5s`` or ``1m``."""


def seconds_of(text: str, origin: str) -> float:
    """
    Return the seconds that ``500ms``, ``5s``, ``1m`` or ``7`` stand for.

    Raises ``ConfigError``, which names the ``origin``.
    """
    try:
        return TypeAdapter[float](Seconds).validate_python(text)
    except ValidationError:
        problem = f"expected a time such as 500ms, 5s or 1m, got {text!r}"
        raise ConfigError(origin, [problem]) from None


MOST_BYTES: Final = 1 << 20
"""Longest file that the configuration names: a certificate, a password, a token."""


class Section(BaseModel):
    """Base of all parts of the configuration: immutable, and strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_absent(cls, data: object) -> object:
        # `server:` with nothing below it, all of its keys commented out
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}


class Undisclosed:
    """Mark of a field whose keys and values no message shows: it names files of secrets, or has one by mistake."""


SecretFile = Annotated[FilePath, Undisclosed]
"""A file with a secret: no message shows what stands in its place, which may be the secret itself."""


def described(
    setting: ConnectionSetting,
    *,
    default: object = None,
    min_length: int | None = None,
) -> Any:  # noqa: ANN401 - as Field
    """Return the field of a setting of the connection to Kafka."""
    return Field(
        default=default, min_length=min_length, description=setting.description, examples=list(setting.examples) or None
    )


class TlsConfig(Section):
    """TLS towards a broker or its agent."""

    ca_file: FilePath | None = described(CA_FILE)
    cert_file: FilePath | None = Field(
        default=None,
        description="PEM file with the certificate (and chain) that quotascope presents.",
        examples=["/etc/quotascope/client.pem"],
    )
    key_file: FilePath | None = Field(
        default=None,
        description="PEM file with its private key, when it is not in cert_file.",
        examples=["/etc/quotascope/client.key"],
    )
    key_password: SecretStr | None = Field(
        default=None, description="Password of the private key.", examples=["${KEY_PASSWORD}"]
    )
    key_password_file: SecretFile | None = Field(
        default=None, description="The same, read from a file.", examples=["/run/secrets/key-password"]
    )
    verify: bool = Field(default=True, description="Whether the other side's certificate and host name must be valid.")

    @model_validator(mode="after")
    def _consistent(self) -> TlsConfig:
        at_most_one(self, "key_password", "key_password_file")
        if self.key_file is not None and self.cert_file is None:
            raise ValueError("key_file needs cert_file")
        return self


def matching(pattern: str, problem: str) -> AfterValidator:
    """Return a check that a text matches a pattern as a whole; ``problem`` is the error of other texts."""
    expression = re.compile(pattern, re.ASCII | re.DOTALL)

    def check(text: str) -> str:
        if not expression.fullmatch(text):
            raise ValueError(problem)
        return text

    return AfterValidator(check)


def comma_separated(value: object) -> object:
    """Return a text as the list of the parts between its commas; anything else as it is."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def at_most_one(section: Section, *names: str) -> None:
    """Raise ValueError if more than one of the keys has a value."""
    present = [name for name in names if getattr(section, name) is not None]
    if len(present) > 1:
        raise ValueError(f"{' and '.join(present)} exclude each other")


def exactly_one(section: Section, *names: str) -> None:
    """Raise ValueError unless exactly one of the keys has a value."""
    at_most_one(section, *names)
    if all(getattr(section, name) is None for name in names):
        raise ValueError(f"needs {' or '.join(names)}")


def check_headers(headers: Iterable[str], files: Iterable[str], *, has_login: bool = False) -> None:
    """
    Raise ValueError for a header that is there twice: case does not tell names of headers apart.

    With a login, the header Authorization would be a second one.
    """
    names: set[str] = set()
    for name in (*headers, *files):
        if name.lower() in names:
            raise ValueError(f"has the header {name[:60]} twice, in headers or header_files, in whatever case")
        names.add(name.lower())
    if has_login and "authorization" in names:
        raise ValueError("has both basic_auth and the header Authorization: give one of them")


def secret(value: SecretStr | None, file: Path | None) -> str | None:
    """
    Return the secret itself, from the configuration or from its file without the last line end.

    Raises ``OSError`` when the file cannot be read, ``ValueError`` when it is not text.
    """
    if file is None:
        return None if value is None else value.get_secret_value()
    try:
        return content_of(file, MOST_BYTES).decode().rstrip("\r\n")
    except OSError as error:
        if not os.path.exists(file):  # noqa: PTH110 - that of Path raises for a name that is too long
            error.filename = "the file"  # what stands in its place may be the secret itself
        raise
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not UTF-8 text") from None


def header_values(values: Mapping[str, SecretStr], files: Mapping[str, Path]) -> dict[str, str]:
    """
    Return HTTP headers, some with values that are read from files.

    Raises as ``secret``, and ``ValueError`` for a value that no header can have.
    """
    headers = {name: value.get_secret_value() for name, value in values.items()}
    headers |= {name: secret(None, file) or "" for name, file in files.items()}
    for name, value in headers.items():
        if not value.isprintable():
            raise ValueError(f"the value of the header {name} holds control characters")
    return headers


@contextmanager
def usable(subject: str) -> Iterator[None]:
    """Raise ``ConfigError`` about ``subject`` for files and values that cannot be used within the block."""
    try:
        yield
    except OSError as error:
        problem = f"{error.filename} cannot be read: {error.strerror}"
    except (ClientError, ValueError) as error:
        problem = str(error)
    else:
        return
    raise ConfigError(subject, [problem]) from None


def tls_of(config: TlsConfig) -> Tls:
    """
    Return the authorities to trust and the certificate to show, to Kafka and to agents alike.

    Raises as ``secret``.
    """
    password = secret(config.key_password, config.key_password_file)
    return Tls(
        ca_file=config.ca_file,
        cert_file=config.cert_file,
        key_file=config.key_file,
        key_password=None if password is None else Secret(password),
        verify=config.verify,
    )
