"""
Quotas that might be set, from a file.

Resolving them to entities is Kafka's precedence (`quotascope.metrics.RuleTable`); what they would do, `pipeline.whatif` says. Needs neither
NumPy nor Arrow.
"""

from .candidate import Candidate, MutationPolicy
from .reading import candidates_in, read_candidates

__all__ = ["Candidate", "MutationPolicy", "candidates_in", "read_candidates"]
