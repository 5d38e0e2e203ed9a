"""
A request is the same however agents carry its line, with Kafka's own time.

What holds none, or several, is called what it is.
"""

import json

import pytest
from tests.builders.requests import line
from tests.pipeline.request_log.forms import FORMS, MESSAGE, OF_BARE_MESSAGES
from tests.pipeline.request_log.readings import AT, parsed, reason, request

NAME = 'a "quoted" \\ name, {"x": 1} ü 😀 \n'
LINE = line(header={"clientId": NAME}).decode()
BARE = line(header={"clientId": NAME}, pattern="Completed request:{json}").decode()


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    """A line has its time, names and identity in any form, and is a duplicate of its plain form."""
    row, plain = request(FORMS[form](LINE).encode()), request(LINE.encode())
    del row["node"], plain["node"], row["named_by"], plain["named_by"], row["broker"], plain["broker"]
    assert row == plain
    assert (row["completed"], row["client_id"], row["time_precision_ms"]) == (AT, NAME, 1)


@pytest.mark.parametrize("form", OF_BARE_MESSAGES)
def test_layouts_of_kafka(form: str) -> None:
    """The time of a layout is Kafka's, and its thread names the node."""
    row = request(OF_BARE_MESSAGES[form](BARE).encode())
    assert (row["completed"], row["client_id"], row["broker"], row["named_by"]) == (AT, NAME, "4", "line")
    assert row["identity"] == request(LINE.encode())["identity"]


def test_pods_name_brokers() -> None:
    """A broker is named by its pod, which runs only one, and never by text of a client."""
    row = request(FORMS["Vector of Kubernetes"](LINE).encode())
    assert (row["broker"], row["node"], row["named_by"]) == ("kafka-0", "kafka-0", "line")
    hostile = "data-plane-kafka-network-thread-9-ListenerName(X)"
    row = request(FORMS["docker json-file"](line(header={"clientId": hostile}).decode()).encode())
    assert (row["broker"], row["named_by"]) == ("10.0.0.1", "address")


@pytest.mark.parametrize(
    ("time", "precision"),
    [("09:02:00", 1000), ("09:02:00.6", 100), ("09:02:00,65", 10), ("09:02:00.655", 1), ("09:02:00.655123", 1)],
)
def test_precision(time: str, precision: int) -> None:
    """The time of a line is Kafka's own, whatever digits an agent's has."""
    text = FORMS["CRI"](line(time=f"2026-11-21 {time}").decode())
    assert request(text.encode())["time_precision_ms"] == precision


ASK = "Completed request:"
JSON = BARE.removeprefix(ASK)
CUT = line(header={"requestApiKey": 1, "clientId": "app-7"})[:220]


@pytest.mark.parametrize(
    ("text", "why", "detail"),
    [
        ((f"[2016-09-21 14:00:00,000] TRACE {ASK}Name: FetchRequest; Version: 1; ClientId: "
            "app; from connection x"), "layout before 2.8", "Kafka 0.8 to 0.10"),
        ((f"[2017-09-21 14:00:00,000] DEBUG {ASK}{{api_key=1,api_version=3,client_id=app}} -- "
            f"{{replica_id=-1}}"), "layout before 2.8", "Kafka 0.9 to 0.11"),
        ((f"[2019-09-21 14:00:00,000] DEBUG {ASK}RequestHeader(apiKey=FETCH, apiVersion=11) -- "
            "FetchRequestData()"), "layout before 2.8", "Kafka 1.0 to 2.7"),
        (json.dumps({"log": f"[2019-09-21 14:00:00,000] {ASK}RequestHeader(apiKey=FETCH)\n"}),
            "layout before 2.8", "Kafka 1.0 to 2.7"),
        (json.dumps({"message": LINE, "raw": LINE + " "}), None, None),
        (json.dumps({"message": LINE, "event": {"original": "x " + LINE}}), "wrapped", "event.original, message"),
        (json.dumps({"events": [{"message": LINE}, {"message": LINE.replace("app", "b")}]}).replace("a \\\\", "c", 1),
            "wrapped", "events[].message"),
        (json.dumps({"MESSAGE": None, "_HOSTNAME": "b"}), "truncated", "journalctl -o json --all"),
        (json.dumps({"message": "no request"}), "not a request", "`Completed request:`"),
        (json.dumps({"message": BARE}), "no time", "no date and time"),
        (json.dumps({"message": f"14:00:00,037 DEBUG {BARE}", "time": "2026-11-21T09:02:04Z"}), "no time", "no date"),
        (f"2026-11-21T09:02:04Z 09:02:00,655 DEBUG {BARE}", "no time", "no date"),
        (f"Nov 21 09:02:00 broker-1 kafka[1]: {BARE}", "no time", "no year"),
        (f"2026-11-21 09:02:00,655 CST DEBUG {BARE}", "no time", "CST, which has several meanings"),
        (f"2026-11-21 09:02:00,655 Mars/Base {BARE}", "no time", "unknown zone"),
        (f"[2026-11-21 09:02:00,655] DEBUG {ASK}{{", "several lines", "jq -c"),
        ("}", "not a request", ""),
        (f"[2026-11-21 09:02:00,655] DEBUG {ASK}", "several lines", "in the next lines"),
        (json.dumps({"message": "Completed request", "kafka": json.loads(JSON)}),
            "wrapped", "pass Kafka's message as it is"),
        (f"2026-11-21 09:02:00,655 {JSON}", "wrapped", "without `Completed request:`"),
        ("Nov 21 09:02:04 broker-1 kafka[1]: [5.3K blob data]", "truncated", "journalctl -o json --all"),
        (LINE.encode("utf-16-le").decode("latin-1"), "other encoding", "iconv -f UTF-16"),
        (json.dumps({"message": f"{LINE}{LINE}"}), "wrapped", "write each on one line"),
        (f"2026-11-21T09:02:04Z 09:02 DEBUG {BARE}", "no time", "no seconds"),
        (f"11/21/2026 09:02:00,655 DEBUG {BARE}", "no time", "the order is not certain"),
        (f"2026-11-21 09:02:00,655 [pool 1695300000] DEBUG {BARE}", "no time", "more than a day apart"),
        (f"1795251720.655 kafka[1700000000] DEBUG {BARE}", "no time", "not certain which"),
    ],
)  # fmt: skip
def test_reasons(text: str, why: str | None, detail: str | None) -> None:
    """
    The reason names the kind of line, with the release, the fields, or what to do.

    The same text in two fields is one request.
    """
    if why is None:
        assert request(text.encode())["client_id"] == NAME
        return
    short, long = reason(text.encode())
    assert short == why
    assert (detail or "") in long


@pytest.mark.parametrize(
    "text", [CUT, json.dumps({"log": CUT.decode()}).encode(), json.dumps({"log": CUT.decode()})[:-30].encode()]
)
def test_what_a_cut_line_still_says(text: bytes) -> None:
    """A cut line is reported with its API and client, also where it is quoted."""
    (row,) = parsed(text).quarantine.to_pylist()
    assert (row["reason"], row["api_key"], row["client_id"], row["lines"]) == ("truncated", 1, "app-7", 1)


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-11-21 09:02:00,655 [dd.trace_id=1234567890123456789 dd.span_id=1234567890123456] ",
        "2026-11-21 09:02:00,655 1234567890 DEBUG ",
        "2026.11.21 09:02:00.655 DEBUG ",
        "1795251720655 [1234567890] DEBUG ",
    ],
)
def test_numbers_that_are_no_times(prefix: str) -> None:
    """Ids of traces and processes beside Kafka's time are not taken for the time."""
    row = request((prefix + BARE).encode())
    assert (row["completed"], row["time_precision_ms"]) == (1_795_251_720_655, 1)


@pytest.mark.parametrize("between", ["", "\r", "\0", " (kafka.request.logger) "])
def test_requests_on_one_line(between: str) -> None:
    """Each request of a line without line feeds is read, whatever a client's name is; the last may be cut."""
    lines = [LINE.replace('"correlationId":7', f'"correlationId":{number}') for number in range(4)]
    result = parsed(between.join(lines).encode())
    assert result.requests["correlation_id"].to_pylist() == [0, 1, 2, 3]
    assert result.requests["identity"].to_pylist() == parsed(*map(str.encode, lines)).requests["identity"].to_pylist()
    cut = parsed((between.join(lines)[:-400]).encode())
    assert cut.requests["correlation_id"].to_pylist() == [0, 1, 2]
    assert cut.quarantine["reason"].to_pylist() == ["truncated"]


def test_pieces_without_their_end() -> None:
    """If the last piece of a message is lost, the next message is read separately, and the lost one is reported."""
    lines = [LINE.replace('"correlationId":7', f'"correlationId":{number}').encode() for number in range(3)]
    first_pieces, second, third = (pieces(text, 300) for text in lines)
    result = parsed(*first_pieces[:-1], *second, *third[:-1], third[-1].replace(b" F ", b" P "))
    assert result.requests["correlation_id"].to_pylist() == [1, 2]
    assert result.quarantine["reason"].to_pylist() == ["truncated"]


def pieces(text: bytes, size: int) -> list[bytes]:
    """Yield a message as containerd writes it in pieces."""
    cut = [text[offset : offset + size] for offset in range(0, len(text), size)]
    tags = [b"P"] * (len(cut) - 1) + [b"F"]
    return [
        b"2026-11-21T09:02:04.237000001Z stdout " + tag + b" " + piece for tag, piece in zip(tags, cut, strict=True)
    ]


@pytest.mark.parametrize("size", [150, 300, 10_000])
def test_messages_in_pieces_are_joined(size: int) -> None:
    """Partial lines of CRI are joined to one request under the first line's number, across other streams."""
    cut = pieces(LINE.encode(), size)
    other_text = b"2026-11-21T09:02:04.237000002Z stderr F something else"
    mixed = [each for piece in cut for each in (piece, other_text)]
    result = parsed(*mixed)
    (row,) = result.requests.to_pylist()
    assert (row["identity"], row["line"]) == (request(LINE.encode())["identity"], 1)
    assert result.quarantine["reason"].to_pylist() == ["not a request"]


def test_pieces_of_docker_are_joined() -> None:
    """Docker's json-file cuts after 16 KiB, also within a character: only the last piece ends with a line feed."""
    for name in ("x", "é", "😀"):
        for shift in range(4):
            whole = line(header={"clientId": "y" * shift + name * 20_000}).decode()
            cut = dockers_pieces(whole + "\n")
            assert len(cut) > 1
            (row,) = parsed(*cut).requests.to_pylist()
            assert (row["correlation_id"], row["completed"]) == (request(whole.encode())["correlation_id"], AT)
            assert row["client_id"].replace("\ufffd", "").startswith("y" * shift + name * 7_000)


def dockers_pieces(text: str, size: int = 16 * 1024) -> list[bytes]:
    """Yield a message as Docker writes it in pieces."""
    data = text.encode()
    fields = ({"log": data[offset : offset + size].decode(errors="replace")} for offset in range(0, len(data), size))
    more = {"stream": "stdout", "time": "2026-11-21T09:02:04Z"}
    return [json.dumps(field | more, separators=(",", ":")).encode() for field in fields]


@pytest.mark.parametrize("longer", ["", "x" * 16_000, "x" * 40_000])
def test_messages_of_docker_without_line_feeds_are_several(longer: str) -> None:
    """A shipper took the line feeds off: only a piece of Docker's size goes on in the next line."""
    whole = [line(header={"correlationId": number, "clientId": f"app{longer}"}).decode() for number in range(3)]
    texts = [piece for text in whole for piece in dockers_pieces(text, 10**6)]
    other_text = dockers_pieces("[2026-11-21 09:02:00,655] INFO started")
    result = parsed(*texts[:1], *other_text, *texts[1:])
    assert result.requests["correlation_id"].to_pylist() == [0, 1, 2]
    assert result.quarantine["reason"].to_pylist() == ["not a request"]


def test_a_message_without_its_end_is_lost() -> None:
    """Pieces whose last one is missing are one lost request, and harm no later one."""
    first_pieces, *_ = pieces(LINE.encode(), 300)
    result = parsed(first_pieces, LINE.encode())
    assert len(result.requests) == 1
    assert result.quarantine["reason"].to_pylist() == ["truncated"]


def test_message_has_its_pattern() -> None:
    """The tests' line begins with their message in Kafka's own pattern."""
    assert LINE.startswith(MESSAGE)
