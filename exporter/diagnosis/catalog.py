"""
Everything that quotascope finds wrong, missing or in order.

One table for the doctor, ``status``, ``top``, the page, the JSON API and the log. A text is a sentence that names what
it is about; the advice says what to do. Both are templates of `str.format`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum, unique
from typing import Final


class FindingSeverity(StrEnum):
    """The severity of a finding, from good to bad."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing needs to be done."""
    WARNING = "warning"
    """It works, but shows less than it could, or will stop working soon."""
    ERROR = "error"
    """It does not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked, and the result."""

    code: str
    """
    What was found: the name of the catalog's entry in lower case, such as ``source_unreadable``. Never translated or
    reworded.
    """
    severity: FindingSeverity
    check: str
    """The part that was checked, such as ``agents``."""
    subject: str = ""
    """Which one, such as the name of a source; empty where there is only one."""
    text: str
    """The evidence, in a sentence that also names the subject."""
    advice: str = ""
    """What to do; empty where there is nothing to do, or the text says it."""
    commands: tuple[str, ...] = ()
    """Commands for bash that do it, without an address of Kafka; without ``--apply`` they show what would change."""


def worst(findings: Iterable[Finding]) -> FindingSeverity:
    """Return the worst severity, ``OK`` without any finding."""
    order = list(FindingSeverity)
    severities = (finding.severity for finding in findings)
    return max(severities, key=order.index, default=FindingSeverity.OK)


_OK: Final = FindingSeverity.OK
_NOTE: Final = FindingSeverity.NOTE
_WARNING: Final = FindingSeverity.WARNING
_ERROR: Final = FindingSeverity.ERROR


# fmt: off
@unique
class Catalog(Enum):
    """The severity, the check, the text and the advice of each finding."""

    # any check of the doctor
    CHECK_TIMED_OUT = _ERROR, "", "The check {subject} did not end within {seconds:g} s.", "Raise --timeout."
    CHECK_FAILED = _ERROR, "", "{error}", ""
    CHECK_DEFECT = (_ERROR, "",
        "The check {subject} itself failed: {error}",
        "This is a defect of quotascope: please report it.")

    # configuration and the exporter itself
    CONFIG_INVALID = (_ERROR, "configuration",
        "{subject}: {problem}",
        "`quotascope config example` prints every key with what it means.")
    RELOAD_FAILED = (_ERROR, "configuration",
        "The configuration cannot be used, so the previous one stays in force: {error}",
        "Correct it and send SIGHUP again; `quotascope config check` shows whether it is valid.")
    FILES_REFUSED = (_ERROR, "configuration",
        "A file that the configuration names cannot be used as it is now, so what it held before stays in use: {error}",
        "Correct the file: the exporter tries it again every 5 s.")
    PUSH_FAILS = (_ERROR, "otlp",
        "The last push did not arrive as a whole: {error}",
        "`quotascope doctor` tries the receiver.")
    RESTART_NEEDED = (_WARNING, "configuration",
        "These fields have changed, but take effect only after a restart: {fields}.",
        "Restart the exporter.")
    TASK_RESTARTED = (_WARNING, "exporter",
        ("The exporter's background task {subject!r} failed and was restarted {times} since the exporter started: "
        "what it keeps up to date may be out of date."),
        "This is a defect of quotascope: please report it with the traceback in the exporter's log.")

    # commands that read a running exporter
    API_ENTITIES_CUT = (_WARNING, "exporter",
        "The exporter sends {count} of its {total} entities, those with the highest utilization.",
        "Read /api/v1/entities for the others, or the brokers with --source or --discover.")
    API_RULES_CUT = (_WARNING, "exporter",
        "The exporter has {total} configured quotas, which is more than it sends: limits and rules are unknown here.",
        "Give --bootstrap-servers to read them from Kafka.")

    # agents
    NO_SOURCE = (_ERROR, "agents",
        "No source is configured.",
        "Name the agents of your brokers and controllers under `sources`, or let `discovery` find them.")
    NO_SOURCE_FOUND = _ERROR, "agents", "No source was found.", "Check `discovery`."
    SOURCE_UNREADABLE = _ERROR, "agents", "Source {subject!r} ({dialect}) cannot be read: {error}", ""
    SOURCE_LATE = (_WARNING, "agents",
        "Source {subject!r} ({dialect}) has not answered yet: its values are {age:.0f} s old.",
        ("Reduce what its agent writes, for example with the rules of `quotascope rules jmx-exporter`, or raise "
        "Prometheus's scrape_timeout."))
    SOURCE_STALE = (_WARNING, "agents",
        "Prometheus has missed scrapes of source {subject!r} ({dialect}): its values are {age:.0f} s old.",
        "Look at `up` and scrape_duration_seconds of this target in Prometheus.")
    BROKERS_NOT_READ = (_WARNING, "agents",
        ("No source reads {brokers} of the cluster ({names}): clients are not shown there, and figures of clients "
        "are those of the other nodes alone."),
        "Add the agents of all brokers to `sources`, or let `discovery` find them.")
    SOURCE_INCOMPLETE = _WARNING, "agents", "Source {subject!r} ({dialect}) gives less than it could.", "{remark}"
    SOURCE_WITHOUT_ENTITIES = (_WARNING, "agents",
        "Source {subject!r} ({dialect}) reports no client under a quota.",
        "If there is traffic, {hint}.")
    SERIES_UNPLACED = (_ERROR, "agents",
        "Source {subject!r} ({dialect}): {lines}. Clients in them are not shown.",
        ("Use the rules that `quotascope rules jmx-exporter` writes, or name metrics and labels as an agent in "
        "the documentation (Supported agents) does; `quotascope rules check` shows which of the agent's rules make "
        "such lines."))
    CLIENTS_NOT_SHOWN = (_ERROR, "agents",
        ("Clients are throttled on node {node} now: {queues} connections wait in its delay queues. But source "
        "{subject!r} ({dialect}) shows no client{of}: {reason}."),
        "{rule}")
    SOURCE_SHOWS_NO_CLIENT = (_WARNING, "agents",
        ("Source {subject!r} ({dialect}) shows no client of node {node}, while others show {count}: figures of "
        "clients are those of the other nodes alone, unless none uses this node."),
        "{rule}")
    KINDS_PARTLY_SHOWN = (_WARNING, "agents",
        ("Source {subject!r} ({dialect}) shows no {kinds}, while others do: figures of these clients are those of "
        "some nodes alone, unless none of them uses node {node}."),
        "{rule}")
    SOURCE_WITHOUT_QUEUES = (_WARNING, "agents",
        "Source {subject!r} reports no delay queue of {types}, which every node has.",
        ("The agent leaves it out: widen its policy (Jolokia), its rules or its filter of object names "
        "(jmx_exporter) or its allowList (Strimzi); the documentation (Supported agents) lists what is needed."))
    SOURCE_READ = (_OK, "agents",
        "Source {subject!r}: node {node} speaks {dialect}, {count} values in {seconds:.3f} s.",
        "")
    SOURCE_STANDS_BY = (_OK, "agents",
        "Source {subject!r} stands by for node {node}, which is read through another source.",
        "")
    DIALECT_GAPS = (_NOTE, "agents",
        "Source {subject!r}: {dialect} exports {missing}.",
        "Use `quotascope rules jmx-exporter`, or Jolokia.")
    DIALECT_GAPS_MATTER = (_WARNING, "agents",
        "Source {subject!r}: {dialect} exports {missing}, though {count} controller mutation quotas are configured.",
        "Use `quotascope rules jmx-exporter`, or Jolokia.")

    # discovery
    DISCOVERY_FAILED = (_ERROR, "discovery",
        "Discovery ({subject}): {error}",
        ("The {count} nodes that it found last are still read; the documentation (Finding brokers and controllers) "
        "lists what it needs."))
    TARGETS_MISSING = (_WARNING, "discovery",
        "discovery.file_sd: {problem}",
        ("The exporter starts without these targets and looks for them again every {seconds:g} s: check the paths "
        "and files, unless they come later."))
    DISCOVERY_WORKS = _OK, "discovery", "Discovery ({subject}) finds {count} nodes.", ""

    # Kafka
    NO_ADMIN_API = (_WARNING, "kafka",
        "No Admin API is configured: limits, rules and utilization are unknown, and stale beans are shown as well.",
        "Set kafka.bootstrap_servers.")
    LIMITS_DENIED = _ERROR, "kafka", "The configured quotas may not be read: {error}{age}", ""
    LIMITS_UNREACHABLE = (_ERROR, "kafka",
        "The Admin API cannot be reached: {error}{age}",
        "Check kafka.bootstrap_servers, security_protocol and the network.")
    LIMITS_INCOMPLETE = (_WARNING, "kafka",
        "Unknown: {subject}: {reason}",
        ("Limits and rules of clients are right; capacity, bursts, the usage of controller mutation quotas or the "
        "limits of connections, replication and remote storage may be missing."))
    KAFKA_UNREACHABLE = _ERROR, "kafka", "{error}", "{hint}"
    KAFKA_ANSWERS = _OK, "kafka", "Cluster {cluster} answers: {brokers}, {release}.", ""
    KAFKA_TESTED = _OK, "kafka", "Kafka {subject} is a release that quotascope is tested with.", ""
    KAFKA_UNTESTED = (_NOTE, "kafka",
        "Kafka {subject} is none of the releases that quotascope is tested with, but lies between them.",
        "The documentation (Supported agents) lists what is tested.")
    KAFKA_NEWER = (_NOTE, "kafka",
        "Kafka {subject} may be newer than every release that quotascope is tested with.",
        "The documentation (Supported agents) lists what is tested.")
    KAFKA_TOO_OLD = (_WARNING, "kafka",
        "Kafka {subject} is older than 2.8, the oldest release that quotascope is tested with.",
        "{works}")
    LIMITS_UNSUPPORTED = (_WARNING, "kafka",
        "The configured quotas cannot be read: {error}{age}",
        "Usage and throttle times are shown; limits, rules and utilization need Kafka 2.6 or later.")
    RULES_NOT_ENFORCED = (_WARNING, "quotas",
        "{rules} of {subject} without effect: {reason}.",
        "Upgrade Kafka, or limit these clients otherwise; the controller stores the quota, and no broker asks for it.")
    PERMISSION_GRANTED = _OK, "permissions", "{subject}: may read {what}.", ""
    NO_QUORUM = _OK, "permissions", "{subject}: not needed in ZooKeeper mode, where no controllers vote.", ""
    REQUEST_UNSUPPORTED = (_WARNING, "permissions",
        "{subject}: {error}; without it {lost}.",
        "Nothing is to be granted: the release of Kafka is too old for it.")
    PERMISSION_MISSING = _ERROR, "permissions", "{subject}: may not read {what}; without them {lost}.", "{grant}"
    PERMISSION_UNKNOWN = (_ERROR, "permissions",
        "{subject}: could not read {what}: {error}",
        "Check the brokers' logs and the network, then run this again.")

    REPLICATION_THROTTLED = (_NOTE, "replication",
        "Replication of throttled replicas is limited: {limits}.",
        ("Remove the limits when the reassignment has ended: `kafka-reassign-partitions --verify` does, and "
        "`kafka-configs --describe --entity-type brokers` shows them. The configuration of topics lists the "
        "replicas (leader.replication.throttled.replicas, follower.replication.throttled.replicas)."))
    REPLICATION_UNTHROTTLED = _OK, "replication", "No broker limits replication.", ""

    # quotas and entities
    NO_QUOTA = (_WARNING, "quotas",
        "No client quota is configured: Kafka measures no client until there is one.",
        ("Measure without limiting any client: `quotascope quotas set --measure-only` shows limits that no client "
        "reaches, and sets them with --apply."))
    ONLY_STALE_BEANS = (_WARNING, "quotas",
        "All {count} quota beans are left over from earlier rules.",
        "They disappear an hour after their last request; current ones come with the next requests.")
    NOTHING_MEASURED = (_WARNING, "quotas",
        "No broker has measured a client under a quota: no quota is configured, or no client has sent requests.",
        "Which of these it is follows from the configured quotas, which are unknown here.")
    NO_TRAFFIC = (_WARNING, "quotas",
        "No traffic yet: no broker has measured a client under a quota{rules}.",
        "A broker measures a client from its first request on, where a quota of that type exists.")
    NO_CLIENT_SHOWN = (_WARNING, "quotas",
        "No client is shown{named}{rules}: either none has sent requests, or agents leave clients out ({sources}).",
        "{rule}")
    CLIENTS_WERE_THROTTLED = (_WARNING, "quotas",
        ("No client is shown, although node {subject} throttled some since it was started ({requests}): either "
        "none has sent requests within the last hour, or source {source!r} ({dialect}) leaves clients out."),
        "{rule}")
    ENTITIES_FOLDED = (_WARNING, "quotas",
        ("There are more pairs of user and client-id than the metrics show one by one: {counts}. The {most} most "
        "urgent ones are shown, the others together as {overflow}."),
        "Raise cardinality.max_entities, or choose with include_users, exclude_client_ids and so on.")
    NAMES_FOLDED = (_WARNING, "quotas",
        ("The names of users and client-ids have more bytes than the metrics show one by one: {counts} with the "
        "longest names are shown together as {overflow}."),
        ("Find out which client makes long client-ids, exclude them with exclude_client_ids, or raise "
        "cardinality.max_name_bytes ({most})."))
    NAMES_UNMATCHED = (_WARNING, "quotas",
        ("Whether {names} of more than 256 bytes may be shown is unknown, because too many are that long to remember "
        "what they are compared with (include_users, exclude_client_ids and so on): they are shown as {overflow}."),
        "Find out which client makes long client-ids. All names are compared again when the exporter starts.")
    ENTITIES_LEFT_OUT = (_WARNING, "quotas",
        "All {count} quota entities are left out of the metrics: {excluded} by name, {idle} as idle.",
        "Check the section cardinality of the configuration.")
    CALLBACK_ENTITIES_FOLDED = (_WARNING, "quotas",
        ("Custom callbacks have more entities than the metrics show one by one: {counts}. The {most} most urgent "
        "ones are shown, the others together as {overflow}."),
        "Raise cardinality.max_entities, or let the callback use fewer tags.")
    CALLBACK_DECIDES = (_WARNING, "quotas",
        "Node {subject} leaves quotas to {callback}: limits, rules and utilization are unknown.",
        ("Usage and throttle times are shown; where the callback has tags of its own, in families that begin with "
        "kafka_quota_callback_."))
    CALLBACK_SUSPECTED = (_WARNING, "quotas",
        ("Quota metrics of node {subject} have labels that Kafka's own quotas do not have ({labels}): either its "
        "client.quota.callback.class is set, or its agent's rules have labels of their own. Limits of its clients "
        "are unknown."),
        "Let the Admin API decide: set kafka.bootstrap_servers, and permit DescribeConfigs of this broker.")
    LABEL_LEFT_OUT = (_NOTE, "quotas",
        ("All quota metrics of clients on node {subject} have the same value of a label that Kafka's own quotas do "
        "not have ({labels}): it is taken for a label of the agent and left out."),
        ("Should it be a tag of a custom quota callback, the Admin API says so: set kafka.bootstrap_servers, and "
        "permit DescribeConfigs of this broker."))
    UNIT_BY_NAME = (_NOTE, "quotas",
        ("Throttle times of node {subject} are read in seconds, as their name says ({name}){longest}; Kafka's are "
        "milliseconds."),
        "Check that the agent's rule converts them (`valueFactor: 0.001`), with `quotascope rules check`.")
    STATIC_LIMITS = (_WARNING, "quotas",
        ("Node {subject} leaves quotas to Strimzi's quotas plugin, and the configured rules do nothing: its "
        "clients share {limits} (client.quota.callback.static.*); excluded principals have no limit."),
        "Usage and limits are shown in families that begin with kafka_quota_callback_.")
    STORAGE_THROTTLED = (_WARNING, "quotas",
        ("Strimzi's quotas plugin leaves {factor:.0%} of the produce limit on node {subject}: its storage check "
        "(client.quota.callback.static.storage.*) found a volume of the cluster too full, or failed."),
        "Free or add disk space; the node's log names the volume.")
    NODE_SATURATED = (_WARNING, "quotas",
        ("The request handlers of node {subject} were idle for {idle:.0%} of the last minute, so that all requests "
        "wait. Most request time: {clients}."),
        ("Set a request quota for the client with most of it; `quotascope quotas set --measure-only` lets Kafka "
        "measure request time without a limit."))
    CALLBACK_TAGS_LEFT_OUT = (_WARNING, "quotas",
        "Custom callbacks have too many tags; these are not shown: {tags}.",
        "Entities that differ only in these tags are shown as one.")
    CONTROLLER_NOT_READ = (_WARNING, "quotas",
        "Node {subject}, the active controller, is not read: only it measures the usage of controller mutation quotas.",
        "Add all controllers to `sources`.")
    UTILIZATION_DIFFERS = (_WARNING, "quotas",
        ("Node {subject} reports another utilization (quota-utilization) for {count} entities than follows from "
        "the configured limits."),
        ("A limit was changed moments ago, or one side has missed a change: if this outlasts "
        "kafka.refresh_interval_seconds, compare `quotascope explain` with what the broker enforces."))
    QUOTAS_MEASURED = _OK, "quotas", "{count} entities are measured; {limits}.", ""
    RULES_DECIDE = _OK, "quotas", "Kafka's own rules apply: no broker has a client.quota.callback.class.", ""
    ONE_USER_HAS_TRAFFIC = (_NOTE, "quotas",
        ("User {subject} has {share:.0%} of the measured traffic of {count} users: a proxy, or clients that do not "
        "log in."),
        ("One quota limits all applications behind this user together: limit their client-ids one by one, or have "
        "them log in."))
    LIMITS_OVERRULED = (_NOTE, "quotas",
        "{count} of {total} limits have no effect on clients that send a client-id: {examples}.",
        "Remove them, or the rule that overrules them: `quotascope explain` shows which of the eight levels applies.")
    RULE_MISNAMED = (_WARNING, "quotas",
        "{problem}",
        ("Set its quotas for the name that is meant, and remove it; the documentation (Quotas on the command line) "
        "says how names are compared."))
    RULES_MISNAMED = (_WARNING, "quotas",
        "{count} more rules apply to no client by their names.",
        "`quotascope quotas list --json` has the names that may be meant.")
    LIMITS_NOT_VISIBLE = (_WARNING, "quotas",
        "It is not visible here whether clients are measured under {count} of {total} limits: {examples}. {sources}.",
        "{rule}")
    LIMITS_UNUSED = (_NOTE, "quotas",
        "No client is measured under {count} of {total} limits now: {examples}.",
        "Their clients send no requests now, or a name is misspelled: `quotascope quotas list` shows all limits.")

    # windows and clocks
    WINDOWS_DIFFER = (_WARNING, "windows",
        "Brokers measure in windows of different length, so the same load looks different on them.",
        "Set quota.window.num and quota.window.size.seconds to the same values on all brokers.")
    WINDOW_NOT_COMPARED = (_NOTE, "windows",
        "Brokers measure over the last {window:g} s: reads that are further apart miss bursts, and only scrapes read.",
        "Scrape every {window:g} s or more often, or sample; give --scrape-interval for this check to compare.")
    WINDOW_MISSED = (_WARNING, "windows",
        "Brokers measure over the last {window:g} s, but are read every {every:g} s: bursts in between are not seen.",
        "Set collection.sample_every_seconds to 5s, or scrape more often (documentation: Scrape interval).")
    WINDOW_COVERED = _OK, "windows", "Brokers measure over the last {window:g} s, and are read every {every:g} s.", ""
    CLOCK_UNREADABLE = (_WARNING, "clocks",
        "The clock of source {subject!r} could not be read: {problem}.",
        "Check tls of this source.")
    CLOCK_OFF = (_WARNING, "clocks",
        "The clock of source {subject!r} is {off} {direction} this machine's.",
        "Synchronize the clocks (NTP); otherwise logs, graphs and throttle times of the two do not line up.")
    CLOCK_AGREES = _OK, "clocks", "The clock of source {subject!r} agrees with this machine's.", ""

    # certificates and files
    CERTIFICATE_UNREADABLE = (_WARNING, "certificates",
        "{subject} presents something that is not a certificate.",
        "Check which program listens there.")
    CERTIFICATE_ENDED = _ERROR, "certificates", "The certificate of {subject} expired {days:.0f} days ago.", "Renew it."
    CERTIFICATE_ENDS = (_WARNING, "certificates",
        "The certificate of {subject} expires in {days:.0f} days.",
        "Renew it in time.")
    CERTIFICATE_VALID = _OK, "certificates", "The certificate of {subject} is valid for {days:.0f} more days.", ""
    SECRET_READABLE = _WARNING, "secrets", "Every user of this machine can read {subject}.", "chmod o-rwx {subject}"

    # where the exporter listens
    PORT_ANY = _OK, "listening", "Any free port of {address} will be used.", ""
    PORT_FREE = _OK, "listening", "{subject} is free.", ""
    PORT_SERVED = _OK, "listening", "An exporter already runs on {subject}.", ""
    PORT_SERVED_PROBABLY = (_NOTE, "listening",
        "A server that requires a password answers on {subject}: probably this exporter.",
        "")
    PORT_TAKEN_PERHAPS = (_NOTE, "listening",
        "{subject} is taken, perhaps by this exporter: a server that requires a client certificate cannot be checked.",
        "")
    PORT_TAKEN = _ERROR, "listening", "Another program listens on {subject}.", "Set server.port, or stop that program."
    CANNOT_LISTEN = (_ERROR, "listening",
        "Cannot listen on {subject}: {reason}.",
        "Check server.address or server.listen_addresses.")
    MEMORY_SHORT = (_WARNING, "memory",
        ("{count:,} quota values of {sources}{more} need about {needed} MiB of memory, but the control group in "
        "which this runs allows {limit} MiB."),
        ("If the exporter has the same limit, raise it to {advised} MiB or more (resources.limits.memory of the "
        "chart, MemoryMax of systemd, mem_limit of Compose), or give it fewer sources."))
    TOO_FEW_FILES = (_WARNING, "listening",
        ("Only {most} connections can be open at once instead of {wanted} (server.max_connections): a process that "
        "is started like this one may open too few files."),
        "{hint}")

    # the OTLP receiver
    PUSH_ACCEPTED = _OK, "otlp", "{subject} accepts pushes.", ""
    PUSH_CONNECTS = _OK, "otlp", "{subject} accepts connections; the first push shows whether it accepts metrics.", ""
    PUSH_DENIED = _ERROR, "otlp", "{subject} refuses the credentials: HTTP {status}.", "Check otlp.headers."
    PUSH_REFUSED = (_ERROR, "otlp",
        "{subject} answers HTTP {status} instead of 200.",
        "Check otlp.endpoint and otlp.protocol: port 4318 with /v1/metrics is HTTP, 4317 is gRPC.")
    PUSH_UNREACHABLE = (_ERROR, "otlp",
        "{subject} cannot be reached: {reason}.",
        "Check otlp.endpoint, and that the receiver runs.")

    def __init__(self, severity: FindingSeverity, check: str, text: str, advice: str) -> None:
        self.severity = severity
        self.check = check
        self.text = text
        self.advice = advice

    def found(
        self, subject: object = "", *, check: str = "", commands: tuple[str, ...] = (), **evidence: object
    ) -> Finding:
        """
        Return a finding about a subject, with the evidence that its text and advice name.

        ``check`` is for entries of any check.
        """
        named_evidence = {"subject": str(subject), **evidence}
        return Finding(
            code=self.name.lower(),
            severity=self.severity,
            check=self.check or check,
            subject=str(subject),
            text=self.text.format_map(named_evidence),
            advice=self.advice.format_map(named_evidence),
            commands=commands,
        )
# fmt: on


UNCERTAIN: Final = frozenset(
    entry.name.lower()
    for entry in (
        Catalog.SOURCE_SHOWS_NO_CLIENT,
        Catalog.KINDS_PARTLY_SHOWN,
        Catalog.SOURCE_WITHOUT_ENTITIES,
        Catalog.NO_CLIENT_SHOWN,
    )
)
"""The codes of findings that clients may be hidden: notes where a quiet broker explains it, but never an all-clear."""


def is_all_clear(findings: Collection[Finding]) -> bool:
    """Return whether nothing is wrong, and no finding leaves open that clients are hidden."""
    nothing_wrong = worst(findings) in {FindingSeverity.OK, FindingSeverity.NOTE}
    may_hide_clients = any(finding.code in UNCERTAIN for finding in findings)
    return nothing_wrong and not may_hide_clients
