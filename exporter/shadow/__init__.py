"""What brokers would do under candidate rules, which none of them enforces."""

from .evaluation import Reason, Shadows, cluster_quotas, read_shadows

__all__ = ["Reason", "Shadows", "cluster_quotas", "read_shadows"]
