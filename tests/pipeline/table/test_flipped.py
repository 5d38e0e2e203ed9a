"""Damage of a bit: no file with one is read as if it were whole, wherever the bit is."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from quotascope.pipeline.errors import DamagedFile
from quotascope.pipeline.table import File, Table


def _flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_each_flipped_bit_is_found(table: Table) -> None:
    """Flipped bits in all parts of a file are found, also where no page's checksum covers them."""
    (file, *_) = table.files()
    path = Path(table.storage.uri, file.path)
    whole = path.read_bytes()
    bits = [*range(0, 8 * len(whole), 67), *range(8 * len(whole) - 64, 8 * len(whole))]
    for bit in bits:
        _flip(path, bit)
        with pytest.raises(DamagedFile, match=file.path):
            table.read(["user", "amount"], files=[file])
        path.write_bytes(whole)
    assert len(table.read(files=[file])) == file.rows


def test_pages_have_checksums(table: Table) -> None:
    """A file of another name, as another program has that copies it, is verified by the checksums of its pages."""
    (file_of_table, *_) = table.files()
    copy = Path(table.storage.uri, "copy.parquet")
    copy.write_bytes(Path(table.storage.uri, file_of_table.path).read_bytes())
    chunk = pq.read_metadata(copy).row_group(0).column(3)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    offset = begin + chunk.total_compressed_size - 3
    file = File(
        path=copy.name,
        day=file_of_table.day,
        shard=file_of_table.shard,
        rows=file_of_table.rows,
        size=file_of_table.size,
    )
    assert len(table.read(files=[file])) == file_of_table.rows
    _flip(copy, 8 * offset)
    with pytest.raises(DamagedFile, match=r"copy\.parquet is damaged: .*(?i:crc|checksum)"):
        table.read(files=[file])
