"""An exporter's own page read back: the same snapshot again, as far as its series tell it, without a broker being asked."""

from .access import Login, exporter_target, exporter_url
from .fetch import read_exporter
from .snapshot import snapshot_of_page

__all__ = [
    "Login",
    "exporter_target",
    "exporter_url",
    "read_exporter",
    "snapshot_of_page",
]
