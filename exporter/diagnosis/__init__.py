"""
Analyzes snapshots, limits and configurations, and exports nothing.

Findings, explanations, selections, and the doctor.
"""
