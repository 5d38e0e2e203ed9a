"""All dialects of Prometheus text."""

from __future__ import annotations

from typing import Final

from .confluent import CONFLUENT
from .jmx_default import JMX_DEFAULT
from .kafka_2_0_0 import KAFKA_2_0_0
from .quotascope_rules import QUOTASCOPE_RULES
from .strimzi import STRIMZI

DIALECTS: Final = (QUOTASCOPE_RULES, KAFKA_2_0_0, JMX_DEFAULT, STRIMZI, CONFLUENT)
"""In the order in which detection looks for their marks."""
