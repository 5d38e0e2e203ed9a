from __future__ import annotations

import pytest

from quotascope.exporter.config.file import ConfigDocument, parse_document


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: x-${NAME}\nb: $${NAME}\nc: $NAME\n",
            ConfigDocument(
                data={"a": "x-secret", "b": "${NAME}", "c": "$NAME"},
                lines={(): 1, ("a",): 1, ("b",): 2, ("c",): 3},
                raw={("a",): "x-${NAME}", ("b",): "$${NAME}"},
            ),
        ),
        (
            "x: &x {k: 1, l: 2}\ny:\n  <<: *x\n  l: [3]\n",
            ConfigDocument(
                data={"x": {"k": 1, "l": 2}, "y": {"k": 1, "l": [3]}},
                lines={(): 1, ("x",): 1, ("x", "k"): 1, ("x", "l"): 1}
                | {("y",): 2, ("y", "k"): 1, ("y", "l"): 4, ("y", "l", 0): 4},
            ),
        ),
    ],
)
def test_a_document_has_values_and_their_lines(text: str, expected: ConfigDocument) -> None:
    """
    A document has its values with variables replaced, settings merged (own keys win), and their lines.

    ``${NAME}`` stands for an environment variable, ``$${`` for itself, and the text as written is kept for messages.
    """
    assert parse_document(text, "q.yaml", {"NAME": "secret"}) == expected
