"""Columns of the tables that list entities."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """How wide a column is, and what stands above it."""

    header: str
    width: int | None = None
    """None for a share of what the others leave."""
    share: int | None = None
    """How large a share."""
    right: bool = False

    def add_to(self, table: Table) -> None:
        """Make it the next column."""
        table.add_column(
            self.header,
            justify="right" if self.right else "left",
            width=self.width,
            ratio=self.share,
            no_wrap=True,
            overflow="ellipsis",
        )
