"""
Prints the coverage of each room and fails when one is under its floor.

By folder, because a figure over the whole namespace counts only what was imported.
"""

import io
import sys

from coverage import Coverage
from rich.console import Console
from rich.table import Table

FLOORS = {
    "alerts": 95,
    "dashboards": 95,
    "metrics": 95,
    "exporter": 90,
    "clients": 90,
    "spark_listener": 90,
    "pages": 95,
    "pipeline": 90,
    "quotas": 95,
    "demo": 80,
    "cli": 80,
}


def percent(data: Coverage, room: str) -> float:
    """
    Return the covered share of lines and branches of a room, in percent.

    Raises coverage's NoDataError for an empty room.
    """
    return data.report(include=f"{room}/*", file=io.StringIO())


def main() -> int:
    """Return 0 when every room reaches its floor, else 1."""
    data = Coverage()
    data.load()
    figures = {room: percent(data, room) for room in FLOORS}
    table = Table("room", "covered %", "floor %", title="Coverage, lines and branches")
    for room, figure in figures.items():
        color = "green" if figure >= FLOORS[room] else "red"
        table.add_row(room, f"[{color}]{figure:.1f}[/]", str(FLOORS[room]))
    Console().print(table)
    return int(any(figures[room] < floor for room, floor in FLOORS.items()))


if __name__ == "__main__":
    sys.exit(main())
