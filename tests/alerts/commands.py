"""The commands that runbooks name."""

from __future__ import annotations

from tests.alerts.runbook_parts import blocks

from quotascope.alerts.runbook import runbooks

RUNBOOKS = dict(runbooks())

BLOCKS = [(f"{name}-{number}", block) for name, text in RUNBOOKS.items() for number, block in enumerate(blocks(text))]

COMMANDS = sorted({line for _, block in BLOCKS if block.language == "sh" for line in block.text.splitlines()})
