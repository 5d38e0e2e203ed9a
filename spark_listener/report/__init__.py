"""What an application waited for, as tables and as a picture."""

from .account import Account
from .document import document
from .errors import ReportError
from .page import page
from .picture import write_picture
from .reading import read_account
from .tables import tables

__all__ = [
    "Account",
    "ReportError",
    "document",
    "page",
    "read_account",
    "tables",
    "write_picture",
]
