"""
The JSON of a line, as `RequestConvertToJson.requestDescMetrics` of Kafka writes it.

Only what is needed is taken out, in one pass, its types checked. Which fields of request and response are needed depends on the API, whose
key stands near the beginning. Fields that some release leaves out have a default.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from .messages import (
    FETCH,
    PRODUCE,
    SHARE_FETCH,
    Answer,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
)
from .reasons import Reason, Unreadable
from .topics import TOPICS_OF

Request = TypeVar("Request")
Response = TypeVar("Response")


class Header(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    """`RequestHeader.json`, and what the log adds."""

    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None = None
    request_api_version_deprecated: bool = False


class Entry(
    msgspec.Struct, Generic[Request, Response], gc=False, frozen=True, rename="camel"
):
    """All of a line; the times are ms."""

    request_header: Header
    request: Request
    response: Response
    connection: str
    principal: str
    listener: str
    local_time_ms: float
    remote_time_ms: float
    response_queue_time_ms: float
    send_time_ms: float
    throttle_time_ms: int
    is_forwarded: bool = False


Plain: TypeAlias = Entry[msgspec.Raw, Answer | str]
Produce: TypeAlias = Entry[ProduceRequest | str, Answer | str]
Fetch: TypeAlias = Entry[FetchRequest | str, FetchResponse | str]
Whole: TypeAlias = Entry[Any, Any]
"""For rare requests: request and response as Python's own types."""

_Decode: TypeAlias = Callable[[bytes], Entry[Any, Any]]

_plain: Final[_Decode] = msgspec.json.Decoder(Plain).decode
_OF_API: Final[dict[int, _Decode]] = {
    PRODUCE: msgspec.json.Decoder(Produce).decode,
    FETCH: msgspec.json.Decoder(Fetch).decode,
    **dict.fromkeys((*TOPICS_OF, SHARE_FETCH), msgspec.json.Decoder(Whole).decode),
}
_KEY: Final = b'"requestApiKey":'
_BEGINNING: Final = 80
_BY_TEXT: Final = {f"{key},".encode()[:2]: decode for key, decode in _OF_API.items()}


def entry_of(text: bytes) -> Entry[Any, Any]:
    """
    The fields of a line: `Produce`, `Fetch` or `Whole` for the APIs that are, else `Plain`.

    Raises `Unreadable`.
    """
    at = text.find(_KEY, 0, _BEGINNING) + len(_KEY)
    decode = _BY_TEXT.get(text[at : at + 2], _plain)
    try:
        entry = decode(text)
        wanted = _OF_API.get(entry.request_header.request_api_key, _plain)
        # the key may stand elsewhere than it usually does
        return entry if wanted is decode else wanted(text)
    except msgspec.ValidationError as error:
        raise Unreadable(Reason.UNKNOWN_SHAPE, str(error)) from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _broken(text, error) from error


def _broken(text: bytes, error: Exception) -> Unreadable:
    """A line that was cut leaves braces open; one that another was written into, and the like, is broken in another way."""
    cut = text.count(b"{") > text.count(b"}") or not text
    return Unreadable(Reason.TRUNCATED if cut else Reason.NOT_JSON, str(error))
