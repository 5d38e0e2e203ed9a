"""
Requests that a node handles exempt from the request quota, read from the bytecode of its handlers.

`handle` of `KafkaApis` (broker) and `ControllerApis` compares the request's `ApiKeys` one by one and calls a method for
each. What that method calls, with its lambdas and local functions, ends in methods whose names say whether a throttle
may follow.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

HANDLERS = {"broker": "kafka.server.KafkaApis", "controller": "kafka.server.ControllerApis"}
_METHOD = re.compile(r"^  \S.*?([\w$]+)\(.*\)(?: throws .*)?;$")
_CODE = re.compile(r"^\s+\d+: (\w+)\s*(.*)$")
_CALLED = re.compile(r"Method (?:[\w/$]+\.)?([\w$]+):")
_OWN = re.compile(r"Method ([\w$]+):")
_LAMBDA = re.compile(r"InvokeDynamic #(\d+):")
_BOOTSTRAP = re.compile(r"^  (\d+): #\d+ REF_")
_KEY = re.compile(r"Field org/apache/kafka/common/protocol/ApiKeys\.(\w+):")
_PUSHES = {"bipush", "iconst_0", "iconst_1", "iconst_2", "iconst_3", "iconst_4", "iconst_5"}
_NUMBERS = {f"iconst_{number}": number for number in range(6)}

_CHARGED = {
    "sendMaybeThrottle",
    "sendResponseMaybeThrottle",
    "sendResponseMaybeThrottleWithControllerQuota",
    "sendForwardedResponse",
    "forwardToController",
    "maybeRecordAndGetThrottleTimeMs",
}
"""Methods that end in the client's own sensor. Errors of any request may, too (`sendErrorResponseMaybeThrottle`)."""

Code = Mapping[str, list[tuple[str, str]]]


@cache
def methods_of(libs: Path, name: str) -> Code:
    """
    Return the instructions of a class by method, those of overloads together.

    A lambda is a call of what it calls.
    """
    (jar,) = libs.glob("kafka_2.13-*.jar")
    command = ["javap", "-v", "-p", "-cp", str(jar), name]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    body, _, table = text.partition("\nBootstrapMethods:")
    bodies = {int(part[0]): part[1] for part in _lambdas(name, table)}
    instructions: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in body.splitlines():
        if method := _METHOD.match(line):
            current = instructions.setdefault(method[1], [])
        elif code := _CODE.match(line):
            lambda_number = _LAMBDA.search(code[2])
            target = bodies.get(int(lambda_number[1])) if lambda_number else None
            argument = code[2] if target is None else f"Method {target}:"
            if "Method" in argument or "ApiKeys" in argument or code[1] in _PUSHES:
                current.append((code[1], argument))
    return instructions


def _lambdas(name: str, table: str) -> Iterator[tuple[int, str]]:
    """Yield, by number of a bootstrap method, the method of the same class that its lambda runs."""
    own_method = re.compile(rf"REF_\w+ {re.escape(name.replace('.', '/'))}\.([\w$]+):")
    number = -1
    for line in table.splitlines():
        if begun := _BOOTSTRAP.match(line):
            number = int(begun[1])
        elif target := own_method.search(line):
            yield number, target[1]


def dispatched(methods: Code) -> Iterator[tuple[str, str]]:
    """Yield each API that `handle` knows, with the method it calls for it."""
    key = None
    for _, argument in methods["handle"]:
        if named := _KEY.search(argument):
            key = named[1]
        elif (
            key is not None
            and (called := _CALLED.search(argument))
            and called[1].startswith(("handle", "forwardToController"))
        ):
            yield key, called[1]
            key = None


def reached(methods: Code, name: str) -> set[str]:
    """Return all methods that a method calls, by way of methods of its class, their lambdas and local functions."""
    visited: set[str] = set()
    calls: set[str] = set()
    waiting = [name]
    while waiting:
        method = waiting.pop()
        if method in visited or method == "handle":
            continue
        visited.add(method)
        for _, argument in methods.get(method, []):
            if called := _CALLED.search(argument):
                calls.add(called[1])
            if own_call := _OWN.search(argument):
                waiting.append(own_call[1])
    return calls


def exemption(libs: Path, role: str) -> dict[str, str]:
    """
    Return the treatment of each API that a role handles.

    `always`, `never` or, where it depends on the request, `mixed` exempt.

    ACLs and the like are handled by other classes, which know no exemption.
    """
    methods = methods_of(libs, HANDLERS[role])
    by_key = {}
    for key, method in dispatched(methods):
        ends = reached(methods, method)
        exempt = any("Exempt" in name for name in ends)
        charged = bool(ends & _CHARGED)
        by_key[key] = "mixed" if exempt and charged else "always" if exempt else "never"
    return by_key


def strict_since(libs: Path) -> dict[str, int]:
    """
    Return the first version whose clients are refused, by API that mutation quotas charge.

    The controller asks for a quota then.
    """
    methods = methods_of(libs, HANDLERS["controller"])
    by_key = {}
    for key, method in dispatched(methods):
        codes = methods.get(method, [])
        for (op, argument), (_, called) in pairwise(codes):
            if "newQuotaFor" in called:
                by_key[key] = _NUMBERS[op] if op in _NUMBERS else int(argument)
    return by_key
