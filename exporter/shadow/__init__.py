"""The actions that brokers would take under candidate rules, which none of them enforces."""

from .evaluation import Shadows, UnevaluatedReason, read_shadows

__all__ = ["Shadows", "UnevaluatedReason", "read_shadows"]
