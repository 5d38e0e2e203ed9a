"""Templates that many descriptions share. Names are quoted, for they come from strangers."""

from __future__ import annotations

from typing import Final

ENTITY: Final = (
    "{{ with $labels.user }}user {{ printf `%q` . }}{{ end }}"
    "{{ if and $labels.user $labels.client_id }} with {{ end }}"
    "{{ with $labels.client_id }}client id {{ printf `%q` . }}{{ end }}"
    "{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }}"
)
"""A quota entity: its user, its client id, or both."""
DURATION: Final = "{{ $value | humanizeDuration }}"
PERCENT: Final = "{{ $value | humanizePercentage }}"
BYTES: Final = "{{ $value | humanize }}B/s"
WHOLE: Final = "{{ $value | printf `%.0f` }}"
ROUGH: Final = "{{ $value | printf `%.3g` }}"


def cluster_prefix(label: str) -> str:
    """
    The cluster's name in front of a description, where it has one.

    >>> cluster_prefix("cluster")
    '{{ with $labels.cluster }}[{{ . }}] {{ end }}'
    """
    return f"{{{{ with $labels.{label} }}}}[{{{{ . }}}}] {{{{ end }}}}"
