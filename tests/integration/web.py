"""HTTP as the tests speak it."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer, whatever its status."""

    status: int
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    """GET, or POST with a body; AssertionError when there is no answer, so that one can wait for it."""
    request = urllib.request.Request(url, body, dict(headers or {}))  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - ours
            return Answer(answer.status, answer.headers, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())
    except OSError as error:
        raise AssertionError(f"no answer from {url}: {error}") from error
