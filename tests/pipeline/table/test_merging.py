"""Sorted files merge into what sorting all their rows would give."""

from collections.abc import Iterable

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.table.rows import LAYOUT, SCHEMA, rows

from quotascope.pipeline.table.layout import partitions_of, sorted_by
from quotascope.pipeline.table.merging import merged
from quotascope.pipeline.table.writing import gathered

Row = tuple[str, str | None, int, int]

files = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a", "b", "é", "😀", "a\n"]),
            st.sampled_from([None, "", "x", "y"]),
            st.integers(0, 5),
            st.integers(0, 99),
        ),
        max_size=30,
    ),
    min_size=1,
    max_size=4,
)


def _key(row: Row) -> tuple[str, str, int]:
    return row[0], row[1] or "", row[2]


def _merged(sources: Iterable[tuple[list[Row], int]]) -> list[Row]:
    streams = [rows(*each).to_batches(max_chunksize=size) for each, size in sources]
    found = pa.Table.from_batches(merged(list(streams), LAYOUT.order), SCHEMA)
    return [tuple(row.values()) for row in found.to_pylist()]


@given(files, st.integers(1, 7))
def test_a_merge_is_a_stable_sort(given_files: list[list[Row]], size: int) -> None:
    """However rows are spread over files, and files over batches, the merge is a stable sort of them all."""
    ordered = [sorted(file, key=_key) for file in given_files]
    expected = sorted((row for file in ordered for row in file), key=_key)
    found = _merged((file, size) for file in ordered)
    assert found == expected


def test_blocks_are_given_out_one_by_one() -> None:
    """Many clients come out in several batches, cut between clients only."""
    many = [
        [(f"u{each:05}", "c", file, file) for each in range(40_000)]
        for file in range(3)
    ]
    streams = [rows(*each).to_batches(max_chunksize=9_000) for each in many]
    batches = list(merged(list(streams), LAYOUT.order))
    assert [batch.num_rows for batch in batches] == [65_538, 54_462]
    assert pa.Table.from_batches(batches)["timestamp"].to_pylist() == [0, 1, 2] * 40_000


@given(files)
def test_sorting_is_by_bucket_then_by_order(given_files: list[list[Row]]) -> None:
    """Positions sort rows by partition first, then by the layout's columns, and leave equal ones in place."""
    every = [row for file in given_files for row in file]
    parts = partitions_of(rows(*every), LAYOUT)
    found = [
        every[position] for position in sorted_by(rows(*every), LAYOUT.order, parts)
    ]
    numbered = list(zip(parts.tolist(), every, strict=True))
    assert found == [
        row for _, row in sorted(numbered, key=lambda each: (each[0], _key(each[1])))
    ]


def test_order_of_more_values_than_one_number_holds() -> None:
    """Columns whose ranks do not fit one number together are compared one after the other."""
    far = rows(
        ("b", "x", 2**61, 1), ("a", "x", 2**61, 2), ("a", "x", 0, 3), ("a", None, 5, 4)
    )
    same = partitions_of(far, LAYOUT) * 0
    assert sorted_by(far, LAYOUT.order, same).tolist() == [3, 2, 1, 0]


def test_groups_end_when_they_are_full() -> None:
    """By rows or by bytes, whatever comes first; each begins to count at none. The last may be smaller."""
    ones = [pa.record_batch({"a": pa.array([n], pa.int64())}) for n in range(7)]

    def sizes(most_rows: int, most_bytes: int) -> list[int]:
        return [len(group) for group in gathered(ones, most_rows, most_bytes)]

    assert sizes(2, 1_000) == [2, 2, 2, 1]
    assert sizes(1_000, 3 * 8) == [3, 3, 1]
    assert sizes(1, 1) == [1] * 7
    assert sizes(1_000, 1_000) == [7]
