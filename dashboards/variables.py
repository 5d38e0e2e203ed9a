"""What a viewer can choose at the top; values come from our own series only."""

from __future__ import annotations

from quotascope.metrics.catalog import BUILD_INFO, Family

from .model import Kind, Variable
from .scope import Scope

DATASOURCE = Variable(
    name="datasource", label="Data source", kind=Kind.DATASOURCE, query="prometheus"
)


def common(scope: Scope) -> tuple[Variable, ...]:
    """Data source and cluster: every dashboard has them."""
    cluster = Variable(
        name="cluster",
        label="Cluster",
        kind=Kind.QUERY,
        query=f"label_values({BUILD_INFO.name}, {scope.cluster})",
    )
    return (DATASOURCE, cluster)


def values(family: Family, label: str, title: str, *matchers: str) -> Variable:
    """The values of a label of one small family."""
    selector = f"{{{','.join(matchers)}}}" if matchers else ""
    return Variable(
        name=label,
        label=title,
        kind=Kind.QUERY,
        query=f"label_values({family.name}{selector}, {label})",
    )


def text(name: str, label: str, description: str) -> Variable:
    """Free text: a list of ten thousand names would help nobody, and an empty name could not be chosen."""
    return Variable(name=name, label=label, kind=Kind.TEXTBOX, description=description)


def entity() -> tuple[Variable, ...]:
    """The names of a user and a client-id."""
    return (
        text("user", "User", "Name of the principal, exactly; empty for none."),
        text("client_id", "Client-id", "The client.id, exactly; empty for none."),
    )


def one_of(label: str) -> str:
    """
    A matcher on the chosen values of a variable of the same name, whatever characters they hold.

    >>> one_of("app")
    'app=~`${app:regex}`'
    """
    return f"{label}=~`${{{label}:regex}}`"


def exactly_or_none(label: str) -> str:
    """
    A matcher on the text of a variable, or on no value at all.

    >>> exactly_or_none("user")
    'user=~`|${user:regex}`'
    """
    return f"{label}=~`|${{{label}:regex}}`"


def contains(label: str, variable: str = "") -> str:
    """
    A matcher on all values that contain the text of a variable: all, when it is empty.

    >>> contains("user")
    'user=~`(?is).*${user:regex}.*`'
    """
    return f"{label}=~`(?is).*${{{variable or label}:regex}}.*`"
