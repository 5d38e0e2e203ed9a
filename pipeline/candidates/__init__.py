"""
Quotas that might be set, from a file.

Resolving them to entities is Kafka's precedence (`quotascope.metrics.RuleTable`); `pipeline.replay` shows what they would do. Needs neither
NumPy nor Arrow.
"""

from .candidate import Candidate, MutationPolicy
from .reading import read_candidates

__all__ = ["Candidate", "MutationPolicy", "read_candidates"]
