"""The quota metrics that pages of a jmx_exporter show, by its configuration alone."""

from .checking import KINDS, Checked, Fact, check
from .configuration import AgentConfig, configurations

__all__ = ["KINDS", "AgentConfig", "Checked", "Fact", "check", "configurations"]
