// Rules, alerts and dashboards as a monitoring mixin. `quotascope alerts mixin` prints it as one file, with what it imports. Set it where it is used:
//
//   (import 'quotascope.libsonnet') + {
//     _config+:: {
//       thresholds+: { THROTTLED: 1 },
//       alerts+: { KafkaQuotaNearLimit+: { 'for': '1h', severity: 'info' } },
//     },
//   }
//
// Not in _config, but in the file of `quotascope alerts mixin --alerts-config FILE`: teams and objectives, which make expressions.

// Every key of _config with its default and what it means, and what the command was given.
local defaults = std.parseYaml(importstr 'alerts.yaml');
local site = std.parseJson(importstr 'site.json');
local boards = std.parseJson(importstr 'dashboards.json');
local parts = std.parseYaml(importstr 'rules/parts.yaml');
local texts = [
  std.parseYaml(importstr 'rules/recording.yaml'),
  if site.has_teams then std.parseYaml(importstr 'rules/teams.yaml'),
  if site.objectives != [] then std.parseYaml(importstr 'rules/objectives.yaml'),
  std.parseYaml(importstr 'rules/clients.yaml'),
  std.parseYaml(importstr 'rules/shadow.yaml'),
  std.parseYaml(importstr 'rules/brokers.yaml'),
  std.parseYaml(importstr 'rules/exporter.yaml'),
  std.parseYaml(importstr 'rules/jobs.yaml'),
];
local groups = std.flattenArrays([text.groups for text in texts if text != null]);
local alerts = { [rule.alert]: rule for group in groups for rule in group.rules if std.objectHas(rule, 'alert') };

local every(check, values) = std.all(std.map(check, values));
local contains(text, part) = std.length(std.findSubstr(part, text)) > 0;
local isName(text) =
  std.isString(text) && std.length(text) > 0
  && every(function(char) std.member('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_', char), std.stringChars(text))
  && !std.member('0123456789', text[0]) && !std.startsWith(text, '__') && !std.member(site.taken, text);
local isAddress(text) =
  std.isString(text) && (std.startsWith(text, 'https://') || std.startsWith(text, 'http://'))
  && every(function(char) std.codepoint(char) > 32 && !std.member('{}', char), std.stringChars(text));
local isLabels(labels) =
  std.isObject(labels)
  && every(function(name) isName(name) && std.isString(labels[name]) && !contains(labels[name], '{{'), std.objectFields(labels));

// The whole seconds of a duration of Prometheus; null: it is none.
local seconds(text) =
  local units = { y: 31536000, w: 604800, d: 86400, h: 3600, m: 60, s: 1, i: 0 };
  local order = 'ywdhmsi';
  local step(state, char) =
    if state == null then null
    else if std.member('0123456789', char) then state { digits+: char }
    else if state.digits == '' || !std.member(order[state.next:], char) then null
    else { digits: '', next: std.findSubstr(char, order)[0] + 1, total: state.total + std.parseInt(state.digits) * units[char] };
  if !std.isString(text) || contains(text, 'i') then null
  else
    local end = std.foldl(step, std.stringChars(std.strReplace(text, 'ms', 'i')), { digits: '', next: 0, total: 0 });
    if end == null || end.next == 0 || end.digits != '' then null else end.total;
local duration(number) =
  local units = [[std.floor(number / 86400), 'd'], [std.floor(number / 3600) % 24, 'h'], [std.floor(number / 60) % 60, 'm'], [number % 60, 's']];
  std.join('', ['%d%s' % unit for unit in units if unit[0] > 0]);

// A number as people read it, with four digits, or whole: what jsonnets make of %.4g differs.
local short(value) =
  local scale = if value > 0 then std.pow(10, std.max(0, 3 - std.floor(std.log(value) / std.log(10)))) else 1;
  '%.15g' % (std.floor(value * scale + 0.5) / scale);

// A text with values and parts in their places: a value is taken as it is, a part may have places of its own.
local fill(text, values) =
  local pieces = std.split(text, '${');
  local place(piece) =
    local end = std.findSubstr('}', piece)[0];
    local name = piece[:end];
    (if std.objectHas(values, name) then values[name] else fill(parts[name], values)) + piece[end + 1:];
  pieces[0] + std.join('', std.map(place, pieces[1:]));
// An expression without the lines whose condition does not hold.
local expression(text, values, names) =
  local holds(term) = if std.startsWith(term, 'not ') then !std.member(names, term[4:]) else std.member(names, term);
  local line(text) =
    local parts = std.split(text, '  # if ');
    if std.length(parts) == 1 || every(holds, std.split(parts[1], ', ')) then [parts[0]] else [];
  fill(std.join('\n', std.flatMap(line, std.split(text, '\n'))), values);
// A text of a dashboard, where Grafana has places of its own.
local fillKnown(text, values) =
  local pieces = std.split(text, '${');
  local place(piece) =
    local end = std.findSubstr('}', piece);
    if end != [] && std.objectHas(values, piece[:end[0]]) then values[piece[:end[0]]] + piece[end[0] + 1:] else '${' + piece;
  pieces[0] + std.join('', std.map(place, pieces[1:]));
// The parameters of an address, by labels of an alert: one without a value is left out.
local parameters(labels, prefix) = '{{ $by := "?" }}' + std.join('', [
  '{{ with $labels.%s }}{{ $by }}%s%s={{ . | urlquery }}{{ $by = "&" }}{{ end }}' % [label.name, prefix, label.parameter]
  for label in labels
]);
local ofEntity = parameters([{ name: name, parameter: name } for name in ['user', 'client_id']], '');

{
  local c = $._config,
  local known = {
    cluster_label: site.cluster_label,
    exporter_url: site.exporter_url,
    runbook_url: site.runbook_url,
    grafana_url: site.grafana_url,
    system_users: site.system_users,
    labels: site.labels,
    profile: site.profile,
    thresholds: defaults.thresholds + site.thresholds,
    alerts: { [name]: { enabled: null, keep_firing_for: null, labels: {} } + defaults.alerts[name] + std.get(site.alerts, name, {}) for name in std.objectFields(alerts) },
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
    && check(own.enabled == null || std.isBoolean(own.enabled), key + '.enabled', 'is not true, false or null, which is as the profile says')
    && check(std.member(['critical', 'warning', 'info'], own.severity), key + '.severity', 'is not critical, warning or info')
    && check(seconds(own['for']) != null, key + '.for', 'is not a duration of Prometheus such as 90s, 5m or 1h30m')
    && check(own.keep_firing_for == null || seconds(own.keep_firing_for) != null, key + '.keep_firing_for', 'is not a duration of Prometheus such as 90s, 5m or 1h30m')
    && check(isLabels(own.labels), key + '.labels', 'are not labels: names have letters, digits and underscores only and are not those of these rules, and texts have no {{')
    && check(!std.objectHas(own.labels, c.cluster_label), key + '.labels', 'must not replace the label of clusters'),
  local checkThreshold(name) =
    local value = c.thresholds[name];
    check(std.isNumber(value) && value >= 0, 'thresholds.' + name, 'is not a number of 0 or more'),

  assert check(isName(c.cluster_label) && c.cluster_label != 'team', 'cluster_label', 'cannot be a label: letters, digits and underscores only, and no label of these rules'),
  assert check(c.runbook_url == null || std.isString(c.runbook_url) && contains(c.runbook_url, '{alert}') && isAddress(std.strReplace(c.runbook_url, '{alert}', 'x')), 'runbook_url', 'is not an address of runbooks: it needs https:// or http://, and {alert}'),
  assert check(c.grafana_url == null || isAddress(c.grafana_url), 'grafana_url', 'is not the address of a Grafana: it begins with https:// or http://'),
  assert check(c.exporter_url == null || isAddress(c.exporter_url), 'exporter_url', 'is not the address of an exporter: it begins with https:// or http://'),
  assert check(std.isString(c.system_users) && c.system_users != '', 'system_users', 'is not a regular expression'),
  assert check(std.member(['core', 'all'], c.profile), 'profile', 'is not core or all'),
  assert check(isLabels(c.labels), 'labels', 'are not labels: names have letters, digits and underscores only and are not those of these rules, and texts have no {{'),
  assert check(!std.objectHas(c.labels, c.cluster_label), 'labels', 'must not replace the label of clusters'),
  assert sameKeys(c.thresholds, known.thresholds, 'thresholds') && every(checkThreshold, std.objectFields(known.thresholds)),
  assert sameKeys(c.alerts, known.alerts, 'alerts') && every(checkAlert, std.objectFields(known.alerts)),

  local isEnabled(name) =
    local own = c.alerts[name].enabled;
    if own == null then std.member(std.get(alerts[name], 'profiles', ['all']), c.profile) else own,
  // A minute and a second less than the `for` of an alert and of the one on too many near their limits, the shorter one.
  local window = std.min(seconds(c.alerts.KafkaQuotaNearLimit['for']), seconds(c.alerts.KafkaQuotaManyNearLimit['for'])) - 60,
  local names = [name for name in std.objectFields(alerts) if isEnabled(name)] + (if window >= 120 then ['near_window'] else []),
  local quoted = std.strReplace(std.strReplace(std.strReplace(c.system_users, '\\', '\\\\'), '"', '\\"'), '\n', '\\n'),
  local plain =
    { cluster: c.cluster_label, system_users: quoted, near_window: if window >= 120 then duration(window - 1) else '' }
    + { [name]: '%.15g' % c.thresholds[name] for name in std.objectFields(c.thresholds) }
    + { [name + '_PERCENT']: short(c.thresholds[name] * 100) for name in std.objectFields(c.thresholds) },
  local values = plain {
    owned_entities: std.join('\nor on (%s, user, client_id)\n' % c.cluster_label, [fill(owned.part, plain + owned.values) for owned in site.owned]),
    budget_burns: std.join('\nor\n', [fill('${budget_burn}', plain + objective) for objective in site.objectives]),
  },

  local rounded = { [name]: short(c.thresholds[name]) for name in std.objectFields(c.thresholds) },

  local team(default) =
    local last = if default == '' then [] else ['{{ %s }}' % std.escapeStringJson(default)];
    local cases = ['if %s }}{{ %s }}' % [case.condition, std.escapeStringJson(case.team)] for case in site.cases];
    if cases == [] then std.join('', last)
    else '{{ ' + std.join('{{ else ', cases) + (if last == [] then '' else '{{ else }}' + last[0]) + '{{ end }}',
  local links(rule) =
    local isEntity = rule.labels.scope == 'entity';
    local board = std.split(rule.annotations.dashboard_url, '?');
    local variables = [{ name: if name == 'cluster' then c.cluster_label else name, parameter: name } for name in std.split(board[1], '&')];
    local exporter = std.rstripChars(c.exporter_url, '/');
    local isServed = c.exporter_url != null && c.runbook_url == exporter + '/runbooks/{alert}';
    {
      [if c.runbook_url != null then 'runbook_url']: std.strReplace(c.runbook_url, '{alert}', rule.alert) + (if isServed && isEntity then ofEntity else ''),
      [if c.grafana_url != null then 'dashboard_url']: std.rstripChars(c.grafana_url, '/') + '/d/' + board[0] + parameters(variables, 'var-'),
      [if isEntity && c.exporter_url != null then 'entity_url']: exporter + '/entity' + ofEntity,
    },
  local alert(rule) =
    local own = c.alerts[rule.alert];
    local set = c.labels + own.labels;
    local labels =
      set + { severity: own.severity, scope: rule.labels.scope }
      + (if site.has_teams && rule.labels.scope == 'entity' then { team: team(std.get(set, 'team', '')) } else {})
      // the series has it
      + (if rule.labels.scope == 'team' then { team: '' } else {});
    {
      alert: rule.alert,
      expr: expression(rule.expr, values, names),
      'for': own['for'],
      [if own.keep_firing_for != null then 'keep_firing_for']: own.keep_firing_for,
      labels: { [key]: labels[key] for key in std.objectFields(labels) if labels[key] != '' },
      annotations: { summary: rule.annotations.summary, description: std.strReplace(fill(rule.annotations.description, values + rounded), '\n', '') } + links(rule),
    },
  local record(rule) = { record: rule.record, expr: expression(rule.expr, values, names) },
  local written(rulesOf) = std.filter(function(group) group.rules != [], [group { rules: rulesOf(group) } for group in groups]),

  _config+:: known,

  prometheusRules+:: {
    groups+: written(function(group) [record(rule) for rule in group.rules if std.objectHas(rule, 'record')]),
  },

  prometheusAlerts+:: {
    groups+: written(function(group) [alert(rule) for rule in group.rules if std.objectHas(rule, 'alert') && isEnabled(rule.alert)]),
  },

  // Dashboards have thresholds by name, the label of clusters as CLUSTER_LABEL, and links of runbooks at https://runbook.invalid/.
  local isThreshold(value) = std.isObject(value) && std.objectFields(value) == ['threshold'],
  local board(value) =
    if std.isObject(value) && std.objectHas(value, 'url') && std.startsWith(value.url, 'https://runbook.invalid/') then
      (if c.runbook_url != null then { [key]: board(value[key]) for key in std.objectFields(value) })
    else if isThreshold(value) then c.thresholds[value.threshold]
    else if std.isObject(value) then
      { [std.strReplace(key, 'CLUSTER_LABEL', c.cluster_label)]: board(value[key]) for key in std.objectFields(value) }
    else if std.isArray(value) then
      local items = [item for item in std.map(board, value) if item != null];
      (
        if std.any([std.isObject(item) && isThreshold(std.get(item, 'value')) for item in value])
        then std.sort(items, function(step) if step.value == null then -1 else step.value)
        else items
      )
    else if std.isString(value) then
      local text = fillKnown(std.strReplace(value, 'CLUSTER_LABEL', c.cluster_label), values);
      (
        if std.startsWith(text, 'https://runbook.invalid/')
        then std.strReplace(c.runbook_url, '{alert}', text[std.length('https://runbook.invalid/'):])
        else text
      )
    else value,
  grafanaDashboards+:: board(boards),
}
