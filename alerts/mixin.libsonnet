// A monitoring mixin, written by `quotascope alerts mixin`; changes here are lost. Set it where it is used:
//
//   (import 'mixin.libsonnet') + {
//     _config+:: {
//       thresholds+: { THROTTLED: 1 },
//       alerts+: { KafkaQuotaNearLimit+: { 'for': '1h', severity: 'info' } },
//     },
//   }
//
// Not here, but in the file of `quotascope alerts mixin --alerts-config FILE`: owners and objectives, which make expressions.

local exact(number) = '%.15g' % number;
local short(number) = '%g' % number;

local every(check, values) = std.all(std.map(check, values));
// These mean something else in the rules.
local taken = @TAKEN@;
local isName(text) =
  std.isString(text) && std.length(text) > 0
  && every(function(char) std.member('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_', char), std.stringChars(text))
  && !std.member('0123456789', text[0]) && !std.startsWith(text, '__') && !std.member(taken, text);
local isAddress(text) =
  std.isString(text) && (std.startsWith(text, 'https://') || std.startsWith(text, 'http://'))
  && every(function(char) std.codepoint(char) > 32 && !std.member('{}', char), std.stringChars(text));
local holds(text, part) = std.length(std.findSubstr(part, text)) > 0;
local isLabels(labels) =
  std.isObject(labels)
  && every(function(name) isName(name) && std.isString(labels[name]) && !holds(labels[name], '{{'), std.objectFields(labels));

// The whole seconds of a duration of Prometheus; null: it is none.
local seconds(text) =
  local units = { y: 31536000, w: 604800, d: 86400, h: 3600, m: 60, s: 1, i: 0 };
  local order = 'ywdhmsi';
  local step(state, char) =
    if state == null then null
    else if std.member('0123456789', char) then state { digits+: char }
    else if state.digits == '' || !std.member(order[state.next:], char) then null
    else { digits: '', next: std.findSubstr(char, order)[0] + 1, total: state.total + std.parseInt(state.digits) * units[char] };
  if !std.isString(text) || holds(text, 'i') then null
  else
    local end = std.foldl(step, std.stringChars(std.strReplace(text, 'ms', 'i')), { digits: '', next: 0, total: 0 });
    if end == null || end.next == 0 || end.digits != '' then null else end.total;
local duration(number) =
  if number % 3600 == 0 then '%dh' % (number / 3600)
  else if number % 60 == 0 then '%dm' % (number / 60)
  else '%ds' % number;

{
  local c = $._config,
  local known = {
    // @CONFIG
  },

  // Errors name the key.
  local check(ok, key, problem) = if ok then true else error '_config.%s %s' % [key, problem],
  local sameKeys(given, ours, key) =
    check(std.isObject(given), key, 'is not an object')
    && every(function(name) check(std.objectHasAll(ours, name), key + '.' + name, 'is not known'), std.objectFields(given))
    && every(function(name) check(std.objectHasAll(given, name), key + '.' + name, 'is missing: write +: to keep the others'), std.objectFields(ours)),
  local checkAlert(name) =
    local own = c.alerts[name];
    local key = 'alerts.' + name;
    sameKeys(own, known.alerts[name], key)
    && check(std.isBoolean(own.enabled), key + '.enabled', 'is not true or false')
    && check(std.member(['critical', 'warning', 'info'], own.severity), key + '.severity', 'is not critical, warning or info')
    && check(seconds(own['for']) != null, key + '.for', 'is not a duration of Prometheus such as 90s, 5m or 1h30m')
    && check(own.keep_firing_for == null || seconds(own.keep_firing_for) != null, key + '.keep_firing_for', 'is not a duration of Prometheus such as 90s, 5m or 1h30m')
    && check(isLabels(own.labels), key + '.labels', 'are not labels: names have letters, digits and underscores only and are not those of these rules, and texts have no {{')
    && check(!std.objectHas(own.labels, c.cluster_label), key + '.labels', 'must not replace the label of clusters'),
  local checkThreshold(name) =
    local value = c.thresholds[name];
    check(std.isNumber(value) && value >= 0, 'thresholds.' + name, 'is not a number of 0 or more'),

  assert check(isName(c.cluster_label) && !(@OWNED@ && c.cluster_label == 'owner'), 'cluster_label', 'cannot be a label: letters, digits and underscores only, and no label of these rules'),
  assert check(c.runbook_url == null || std.isString(c.runbook_url) && holds(c.runbook_url, '{alert}') && isAddress(std.strReplace(c.runbook_url, '{alert}', 'x')), 'runbook_url', 'is not an address of runbooks: it needs https:// or http://, and {alert}'),
  assert check(c.grafana_url == null || isAddress(c.grafana_url), 'grafana_url', 'is not the address of a Grafana: it begins with https:// or http://'),
  assert check(std.isString(c.system_users) && c.system_users != '', 'system_users', 'is not a regular expression'),
  assert check(isLabels(c.labels), 'labels', 'are not labels: names have letters, digits and underscores only and are not those of these rules, and texts have no {{'),
  assert check(!std.objectHas(c.labels, c.cluster_label), 'labels', 'must not replace the label of clusters'),
  assert sameKeys(c.thresholds, known.thresholds, 'thresholds') && every(checkThreshold, std.objectFields(known.thresholds)),
  assert sameKeys(c.alerts, known.alerts, 'alerts') && every(checkAlert, std.objectFields(known.alerts)),

  local label = c.cluster_label,
  local users = std.strReplace(std.strReplace(std.strReplace(c.system_users, '\\', '\\\\'), '"', '\\"'), '\n', '\\n'),
  local grafana = std.rstripChars(c.grafana_url, '/'),
  local runbook(alert) = std.strReplace(c.runbook_url, '{alert}', alert),
  // A minute less than the `for` of an alert and of the one on too many of them, the shorter one; null: rules may not be evaluated within it.
  local window(alert) =
    local many = if alert == 'KafkaQuotaNearLimit' then 'KafkaQuotaManyNearLimit' else 'KafkaQuotaThrottleStorm';
    local shorter = std.min(seconds(c.alerts[alert]['for']), seconds(c.alerts[many]['for'])) - 60;
    if shorter >= 120 then duration(shorter) else null,
  local alert(name, rule) =
    local own = c.alerts[name];
    local set = c.labels + own.labels;
    local owner = if std.objectHasAll(rule, 'owner') then { owner: rule.owner(std.get(set, 'owner', '')) } else {};
    local labels = set + { severity: own.severity } + rule.labels + owner;
    {
      alert: name,
      expr: rule.expr,
      'for': own['for'],
      [if own.keep_firing_for != null then 'keep_firing_for']: own.keep_firing_for,
      labels: { [key]: labels[key] for key in std.objectFields(labels) if labels[key] != '' },
      annotations: rule.annotations,
    },
  local written(groups) = std.filter(
    function(group) std.length(group.rules) > 0,
    [group { rules: [rule for rule in group.rules if c.alerts[rule.alert].enabled] } for group in groups]
  ),
  local linked(links) = std.filter(function(link) link != null, links),
  local value(step) = if step.value == null then -1 else step.value,

  _config+:: known,

  prometheusRules+:: {
    groups+: [
      // @RULES
    ],
  },

  prometheusAlerts+:: {
    groups+: written([
      // @ALERTS
    ]),
  },

  grafanaDashboards+:: @DASHBOARDS@,
}
