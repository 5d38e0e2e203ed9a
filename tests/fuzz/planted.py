"""A hunt in which the reader of the page's addresses raises the wrong error: to see that a mistake is found."""

import sys

from tests.fuzz.hunt import hunt


def _break() -> None:
    query = sys.modules["quotascope.exporter.page.query"]
    vars(query)["InvalidQuery"] = LookupError


if __name__ == "__main__":
    hunt(_break)
