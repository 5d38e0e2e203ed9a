"""The alerts, one file for what they are about."""

from .brokers import brokers
from .cluster_wide import cluster_wide
from .configuration import configuration
from .connections import connections
from .exporter import exporter
from .jobs import jobs
from .mutations import mutations
from .near_limit import near_limit
from .replication import replication
from .throttled import throttled
from .traffic import traffic

__all__ = [
    "brokers",
    "cluster_wide",
    "configuration",
    "connections",
    "exporter",
    "jobs",
    "mutations",
    "near_limit",
    "replication",
    "throttled",
    "traffic",
]
