"""Lines of real brokers, changed as no broker changes them: cut, doubled, with hostile names and other values."""

import gzip
import re
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.builders.requests import line, mutation
from tests.pipeline.request_log.forms import FORMS

_CAPTURES: Final = Path(__file__).parents[1] / "captures"
_NAME_OF_VALUE: Final = re.compile(rb'"([A-Za-z]+)":("(?:[^"\\]|\\.)*"|-?[\d.]+|true|false|null|\[\]|\{\})')
_VERSION: Final = re.compile(rb'(?<="requestApiVersion":)-?\d+')
_KEY: Final = re.compile(rb'(?<="requestApiKey":)-?\d+')
_TIME: Final = re.compile(rb"^\[[\d-]{10} [\d:]{8},\d{3}")
_LONG: Final = [b'"' + b"z" * size + b'"' for size in (125, 126, 127, 128, 16_382, 16_383, 40_000)]
VALUES: Final = [
    *(b"null", b"true", b"false", b"[]", b"{}", b"[null]", b"[{}]", b"NaN", b"Infinity", b'"x"', b'""'),
    *(b"0", b"1", b"-1", b"-0", b"3", b"13", b"14", b"18", b"19", b"1.0", b"-0.0", b"1e5", b"1e400", b"0.1e-7"),
    *(b"01", b"+1", b".5", b"1.", b"32767", b"32768", b"2147483647", b"2147483648", b"9223372036854775808"),
    *(b"86400000", b"86400000.1", b"2147483647.5", b"9" * 40, b"-" + b"9" * 40),
    *(b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"a\0b"', b'"\xff"', b'"\xed\xa0\x80"', b'"<b>\\n\\"x"'),
    *(b'"ServiceAccount:a:b"', b'":"', b'"User:"', b'"-"', b'"] DEBUG Completed request:{"', b'"topic\tx"'),
    '"é☃😀"'.encode(),
    f'"{"é☃😀" * 50}"'.encode(),
    *_LONG,
]  # fmt: skip
"""Values in the place of others."""
TEXTS: Final = [
    *(b'"', b"\\", b",", b"{", b"}", b"[", b"]", b"\0", b"\xff", b"\xc3", b" ", b"\t", b"\r", b"\xed\xa0\x80"),
    b'"isForwarded":true,', b'"throttleTimeMs":5,', b'"name":null,', b'"acks":1,', b'"recordsSizeInBytes":7,',
    b'"requestHeader":{"requestApiKey":1,"requestApiVersion":3,"correlationId":1},', b'"requestApiKey":1,',
    b'"currentLeader":{"leaderId":1,"leaderEpoch":2},', b'"abortedTransactions":[{"producerId":1,"firstOffset":2}],',
    b'"replicaState":{"replicaId":3,"replicaEpoch":1},', b'"requestApiVersionDeprecated":true,',
    b'"requestApiVersionDeprecated":null,', b'"clientInformation":null,', b"Completed request:{}",
    b' Completed request:{"requestHeader":{}}',
]  # fmt: skip
"""Texts between others."""
TIMES: Final = [
    b"[1999-12-31 23:59:59,999", b"[2000-01-01 00:00:00,000", b"[2199-12-31 23:59:59,999", b"[2200-01-01 00:00:00,000",
    b"[2026-13-01 00:00:00,000", b"[2026-10-25 02:30:00,000", b"[2026-03-29 02:30:00,000", b"[2026-11-21T09:02:00,655",
    b"[2026-11-21 09:02:00.655", b"[2026-11-21 09:02:00,6x5",
]  # fmt: skip
SHORT: Final = [
    b"", b"junk", b"[2026-11-21 09:02:00,655] DEBUG Completed request:{}", b"[2026-11-21 09:02:00,655] INFO started",
    b"[2026-11-21 09:02:00,655] DEBUG Completed request:{", b"[2026-11-21 09:02:00,655] DEBUG Completed request:{}{}",
    b'[2026-11-21 09:02:00,655] DEBUG Completed request:{"requestHeader":{"requestApiKey":0}}',
]  # fmt: skip
"""Short lines that are no requests; a text that comes again has one row."""


@cache
def undamaged() -> tuple[bytes, ...]:
    """Return lines of brokers of several releases, and of requests that they did not write."""
    of_api: dict[tuple[Path, bytes], list[bytes]] = {}
    for path in sorted(_CAPTURES.glob("*request.log.gz")):
        for text in gzip.decompress(path.read_bytes()).splitlines():
            key = _KEY.search(text)
            of_api.setdefault((path, key[0] if key else b""), []).append(text)
    return (*chain.from_iterable(lines[:40] for lines in of_api.values()), *_made())


def _made() -> list[bytes]:
    partition: dict[str, Any] = {"partitionIndex": 0, "errorCode": 0, "errorMessage": None, "acknowledgeErrorCode": 0}
    partition |= {"acknowledgeErrorMessage": "none", "recordsSizeInBytes": 70, "acquiredRecords": [{}, {}]}
    answers = [{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [partition, partition | {"errorMessage": "é"}]}]
    share = {"requestApiKey": 78, "requestApiVersion": 2}
    topic = {"name": "t", "numPartitions": 3, "replicationFactor": 1, "assignments": []}
    produced = {"transactionalId": "t-1", "acks": 1, "topicData": [
        {"name": "a", "partitionData": [{"index": 0, "recordsSizeInBytes": 500}, {"index": 1, "records": None}]},
        {"name": "b", "partitionData": []},
    ]}  # fmt: skip
    return [
        line(header=share, response={"throttleTimeMs": 0, "responses": answers}),
        line(header=share | {"requestApiVersion": 1}, response={"throttleTimeMs": 7, "responses": answers}),
        line(header=share, response={"throttleTimeMs": 0, "responses": []}),
        *(line(header={"requestApiKey": 0, "requestApiVersion": version}, request=produced) for version in range(14)),
        *(line(header={"requestApiKey": key}, request="", response="") for key in (0, 1, 3, 19, 78)),
        mutation("create", [topic]),
        mutation("delete", [{"name": "t"}], throttle_ms=9),
    ]


def damaged(text: bytes, random: Random) -> bytes:
    """Return a line with one change."""
    values = list(_NAME_OF_VALUE.finditer(text))
    place = random.randrange(len(text) + 1)
    kind = random.randrange(9)
    if kind == 0:
        changed = text[:place]
    elif kind == 1:
        changed = text[:place] + bytes([random.randrange(256)]) + text[place + 1 :]
    elif kind == 2:
        changed = text[:place] + random.choice(TEXTS) + text[place:]
    elif kind == 3:
        changed = _TIME.sub(random.choice(TIMES), text)
    elif kind == 4:
        changed = _VERSION.sub(random.choice([b"0", b"3", b"12", b"13", b"14", b"19", b"-1", b"40000"]), text)
    elif kind == 5:
        changed = _KEY.sub(random.choice([b"0", b"1", b"3", b"12", b"18", b"19", b"20", b"37", b"78", b"-1"]), text)
    elif not values:
        changed = text
    else:
        value = random.choice(values)
        before, after = text[: value.start()], text[value.end() :]
        new = b'"%b":%b' % (value[1], random.choice(VALUES))
        # another value, the name twice, or no such name
        changed = before + {6: new + after, 7: new + b"," + value[0] + after, 8: after.removeprefix(b",")}[kind]
    return changed


def log(random: Random) -> list[bytes]:
    """Return lines, some of them changed, wrapped, doubled or foreign."""
    share = random.choice([0.0, 0.05, 0.5])
    lines: list[bytes] = []
    for _ in range(random.choice([3, 30, 120])):
        text = random.choice(undamaged())
        if random.random() < share:
            for _ in range(random.choice([1, 1, 2, 3])):
                text = damaged(text, random)
        if random.random() < share / 8:
            text = random.choice([*SHORT, text + text, text + b" Completed request:{}", text + b"} x=1"])
        if random.random() < share / 8 and not text.strip(b"\0 ").startswith(b"{"):
            text = random.choice([*FORMS.values()])(text.decode("utf-8", "replace")).encode()
        lines.append(text)
        if random.random() < share / 4:
            lines.append(text)
    return lines
