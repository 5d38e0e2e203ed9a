"""
Quotas as people write them: files under version control, changes, commands for Kafka's tool, manifests for Strimzi.

A `QuotaSet` is all quotas of a file (`read_quotas`, `quotas_yaml`) or of a cluster (`QuotaSet.of`); `difference` is
what leads from one to the other, `kafka_configs` and `kafka_users` say it to other tools, and `apply_changes` to the
cluster.
"""

from .alike import PRINCIPAL_TYPE, Names, bare, differences, oddities
from .change import UNREACHED, RuleChange, altered, apply_changes, difference, measure_only, without, without_all
from .commands import options_of, remove_command, set_command
from .errors import InvalidQuotas, NotApplied, QuotasError
from .kafka_configs import Commands, bash_quoted, kafka_configs
from .kafka_user import API_VERSION, Manifests, kafka_users
from .quota_file import DEFAULT_TEXT, QUOTAS, quotas_in, quotas_yaml, read_quotas, rules_of
from .quota_set import (
    Entity,
    IpEntity,
    QuotaSet,
    from_admin,
    may_be_host,
    merged,
    names_of,
    number,
    number_text,
    overruled_by,
    overruling_rules,
    problems_of,
    storable,
    to_admin,
    unnamed,
)
from .yaml_file import STDIN, Located, StrictLoader, load, load_file, named, refusing, text_of

__all__ = [
    "API_VERSION",
    "DEFAULT_TEXT",
    "PRINCIPAL_TYPE",
    "QUOTAS",
    "STDIN",
    "UNREACHED",
    "Commands",
    "Entity",
    "InvalidQuotas",
    "IpEntity",
    "Located",
    "Manifests",
    "Names",
    "NotApplied",
    "QuotaSet",
    "QuotasError",
    "RuleChange",
    "StrictLoader",
    "altered",
    "apply_changes",
    "bare",
    "bash_quoted",
    "difference",
    "differences",
    "from_admin",
    "kafka_configs",
    "kafka_users",
    "load",
    "load_file",
    "may_be_host",
    "measure_only",
    "merged",
    "named",
    "names_of",
    "number",
    "number_text",
    "oddities",
    "options_of",
    "overruled_by",
    "overruling_rules",
    "problems_of",
    "quotas_in",
    "quotas_yaml",
    "read_quotas",
    "refusing",
    "remove_command",
    "rules_of",
    "set_command",
    "storable",
    "text_of",
    "to_admin",
    "unnamed",
    "without",
    "without_all",
]
