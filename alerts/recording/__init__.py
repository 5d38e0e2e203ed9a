"""The recording rules, one file for each level."""

from .brokers import brokers
from .clusters import baselines, clusters
from .entities import entities, trends
from .jobs import jobs

__all__ = ["baselines", "brokers", "clusters", "entities", "jobs", "trends"]
