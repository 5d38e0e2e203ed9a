"""
Where a table's files lie, and how they are opened.

A local path needs nothing else. A URI such as `s3://bucket/table` is reached through deltalake's own object stores, in Spark's Python
workers too; credentials come from its options or the environment.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from ..errors import DamagedFile
from .file import File
from .merging import BATCH


@dataclass(frozen=True)
class Storage:
    """The folder of a table; it can be sent to other processes."""

    uri: str
    """A local path, or a URI that deltalake knows."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Credentials and endpoints, as deltalake's `storage_options`; never shown."""

    def __repr__(self) -> str:
        return f"Storage({self.uri!r})"

    def __reduce__(self) -> tuple[type["Storage"], tuple[str, dict[str, str]]]:
        return Storage, (self.uri, dict(self.options))

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine, or one that every machine mounts."""
        return "://" not in self.uri

    @cached_property
    def filesystem(self) -> fs.FileSystem:
        """The folder as a file system of its own."""
        if self.is_local:
            return fs.SubTreeFileSystem(
                str(Path(self.uri).absolute()), fs.LocalFileSystem()
            )
        from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - local tables are read without it

        return fs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))

    def make_folder(self, path: str) -> None:
        """Make the folder that a file is to be written to; object stores have none."""
        if self.is_local:
            self.filesystem.create_dir(path, recursive=True)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        if self.filesystem.get_file_info(path).type is fs.FileType.File:
            self.filesystem.delete_file(path)

    def batches(
        self, file: File, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows of a committed file.

        Raises:
            DamagedFile: it is gone, has another size than was committed, or is no Parquet.

        """
        try:
            self._check_size(file)
            with (
                self.filesystem.open_input_file(file.path) as source,
                pq.ParquetFile(source) as opened,
            ):
                wanted = None if columns is None else list(columns)
                yield from opened.iter_batches(batch_size=BATCH, columns=wanted)
        except (OSError, pa.ArrowException) as error:
            raise DamagedFile(self.uri, file.path, str(error)) from error

    def _check_size(self, file: File) -> None:
        info = self.filesystem.get_file_info(file.path)
        if info.type is fs.FileType.NotFound:
            raise DamagedFile(self.uri, file.path, "it is gone")
        if info.size != file.size:
            about = f"it has {info.size} bytes, {file.size} were committed"
            raise DamagedFile(self.uri, file.path, about)
