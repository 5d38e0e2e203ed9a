"""Our own rules for agents: the mapping table, told to others."""

from .jmx_exporter import jmx_exporter_rules
from .naming import NAMES, Name, name_of

__all__ = ["NAMES", "Name", "jmx_exporter_rules", "name_of"]
