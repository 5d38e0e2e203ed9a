"""What brokers would do under candidate rules, which none of them enforces."""

from .evaluation import Reason, Shadows, read_shadows

__all__ = ["Reason", "Shadows", "read_shadows"]
