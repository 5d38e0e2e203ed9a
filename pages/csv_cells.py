"""Names in CSV: spreadsheets take a cell that begins with one of a few characters for a formula, and run it."""

from typing import Final

_FORMULAS: Final = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)
"""The last four are the wide ones, which spreadsheets of some languages take as well."""
_MARK: Final = "'"


def text_cell(text: str) -> str:
    r"""
    A text that no spreadsheet takes for a formula: what begins as one does has an apostrophe before it, which spreadsheets know as "text".

    A text that begins with an apostrophe gets another one, so that a program that takes one off has the text as it was. Numbers do not come
    here: a negative one stays a number.

    >>> text_cell("=1+1"), text_cell("alice"), text_cell("'x"), text_cell("")
    ("'=1+1", 'alice', "''x", '')
    """
    return f"{_MARK}{text}" if text.startswith((*_FORMULAS, _MARK)) else text
