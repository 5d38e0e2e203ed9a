"""Which attribute of which MBean means what: one table for every source."""

from .attribute import MILLISECONDS, PERCENT, SERVER, Attribute, Meaning
from .client_quotas import USAGE
from .table import ATTRIBUTES, attribute_of, wanted

__all__ = [
    "ATTRIBUTES",
    "MILLISECONDS",
    "PERCENT",
    "SERVER",
    "USAGE",
    "Attribute",
    "Meaning",
    "attribute_of",
    "wanted",
]
