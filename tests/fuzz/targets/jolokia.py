"""Answers of a Jolokia agent."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tests.builders.agents import MISSING, items, jolokia, node
from tests.exporter.recorded import CAPTURES, jolokia_bytes
from tests.fuzz.target import Target

from quotascope.exporter.errors import SourceError
from quotascope.exporter.mapping import BeanColumn
from quotascope.exporter.sources.jolokia import REQUESTS, Key, columns_of, numbers_in
from quotascope.exporter.sources.source import LayoutTracker, NodeId

_NEXT = b"\0"
"""Between two answers of one agent: what is learned from the first must not spoil the second."""


def _read(data: bytes) -> None:
    columns: LayoutTracker[Key] = LayoutTracker(columns_of)
    *earlier, latest = data.split(_NEXT)[:3]
    for answer in earlier:
        try:
            columns.place(*numbers_in(answer, REQUESTS))
        except SourceError:
            continue
    keys, values = numbers_in(latest, REQUESTS)
    layout, _ = columns.place(keys, values)
    assert _numbers(columns, keys, values) == _numbers(LayoutTracker(columns_of), keys, values)
    NodeId(None).of(layout)


def _numbers(
    columns: LayoutTracker[Key], keys: list[Key], values: NDArray[np.float64]
) -> dict[BeanColumn, float | None]:
    layout, numbers = columns.place(keys, values)
    assert len(set(layout.columns)) == len(layout.columns) == len(numbers)
    return {
        column: None if math.isnan(number) else number for column, number in zip(layout.columns, numbers, strict=True)
    }


def _seeds() -> Iterator[bytes]:
    names = sorted(path.relative_to(CAPTURES).as_posix() for path in CAPTURES.glob("*/*.jolokia?.json"))
    for name in names:
        yield jolokia_bytes(name)
    first_name, second = names[:2]
    yield jolokia_bytes(first_name) + _NEXT + jolokia_bytes(second)
    yield items(*[MISSING] * len(REQUESTS))
    yield jolokia({**node(), 'kafka.server:type=Produce,user="a:b"': {"byte-rate": math.nan}})
    yield b'{"status":403,"error":"no","error_type":"java.lang.SecurityException"}'


TARGET = Target(
    name="jolokia",
    read=_read,
    refuses=(SourceError,),
    seeds=_seeds,
    words=(
        b'"status":200',
        b'"status":403',
        b'"value":{',
        b'"error":"',
        b"null",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b'"\\ud800"',
        b'\\"',
        b"kafka.server:type=Produce,",
        b"kafka.server:type=app-info,id=",
        b'{"byte-rate":',
        b"[[[[[[[[",
        _NEXT,
    ),
)
