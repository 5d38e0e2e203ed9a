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
local taken = ["alertname", "app", "broker", "cause", "client_id", "dialect", "direction", "discovery", "instance", "ip", "level", "listener", "outcome", "part", "percentile", "phase", "pool", "query", "quota_key", "quota_type", "reason", "request", "rule", "rule_client_id", "rule_user", "scope", "severity", "shadow", "side", "slo", "source", "state", "task", "user", "version"];
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
    // Label that distinguishes the clusters in one Prometheus; it need not exist.
    cluster_label: "cluster",
    // Address of the runbooks, with {alert} for the alert's name, such as
    // https://quotascope.corp/runbooks/{alert} of an exporter; null: no links.
    runbook_url: null,
    // Address of the Grafana that has the dashboards; null: no links.
    grafana_url: null,
    // Users and client-ids of the platform's own programs, which a default quota should not throttle.
    system_users: "(?i).*(entity-operator|topic-operator|user-operator|cruise[-_.]?control|schema[-_.]?registry|mirror[-_.]?maker|quotascope).*",
    // Additional labels of all alerts.
    labels: {},
    // The values at which alerts fire.
    thresholds: {
      // s: average throttle time of an entity. Reason: the client wants about 5 % more than its limit. Other
      // values: 0.1 for interactive clients.
      THROTTLED: 0.5,
      // ratio: average utilization of 15 minutes. Reason: throttles below it are bursts. Other values: lower if
      // bursts matter.
      PERSISTENT: 0.5,
      // ratio: average utilization of 30 minutes on the busiest broker. Reason: normal variation needs the last
      // tenth. Other values: 0.8 if raising a limit takes days.
      NEAR_LIMIT: 0.9,
      // ratio: utilization from which a trend is followed. Reason: trends of small values are noise. Other
      // values: lower for clients that grow within hours.
      PREDICTION: 0.6,
      // s: average throttle time of an entity. Reason: default `request.timeout.ms`. Other values: your shortest
      // request timeout.
      CLIENT_TIMEOUT: 30,
      // s/s: throttle time of a cluster per second. Reason: 25 connections that only wait. Other values:
      // connections of your three largest applications.
      SPIKE: 25,
      // times: throttle time of a cluster / its baseline. Reason: nightly jobs are in the baseline. Other
      // values: 2 for even load, higher for load that swings.
      SPIKE_FACTOR: 4,
      // entities: entities throttled at once. Reason: fewer have their own alerts. Other values: 1 if a single
      // client is critical.
      SPIKE_ENTITIES: 5,
      // entities: entities throttled at once. Reason: suggests a changed limit or broker. Other values: a tenth
      // of the usual entities, at least 10.
      MANY_ENTITIES: 20,
      // times: entities throttled at once / their baseline. Reason: some clusters throttle dozens daily. Other
      // values: as SPIKE_FACTOR.
      MANY_ENTITIES_FACTOR: 3,
      // entities: entities throttled, or near limits, at once. Reason: more alerts at once are not read one by
      // one. Other values: as many as you read.
      STORM: 50,
      // entities: entities that a shadow would throttle on one broker. Reason: fewer have their own alerts.
      // Other values: as many as you would raise limits for one by one.
      SHADOW_ENTITIES: 10,
      // connections: connections muted by a broker, average of 10 minutes. Reason: a client has one or two per
      // broker. Other values: three times the value of a busy day.
      DELAY_QUEUE: 20,
      // times: muted connections / those half an hour before. Reason: a steady queue is in balance. Other
      // values: higher if many clients start together.
      DELAY_QUEUE_GROWTH: 1.5,
      // s: average throttle time of the controller mutation quota. Reason: seconds are normal. Other values:
      // higher for tools that may run all night.
      MUTATION_THROTTLED: 5,
      // ratio: share of the last 15 minutes with tokens below 0. Reason: one large request recovers. Other
      // values: lower if people wait for topics.
      TOKENS_DEBT: 0.8,
      // errors/s: refusals per second in a cluster, by request. Reason: waiting clients are refused a few times
      // a minute. Other values: higher for tools that create thousands of topics.
      REFUSALS: 0.2,
      // times: refusals / the average of the day before. Reason: some clusters have refusals daily. Other
      // values: lower to detect slow growth.
      REFUSALS_FACTOR: 3,
      // ratio: request time of clients and broker / (`num.io.threads` + `num.network.threads`). Reason: with the
      // default 8 + 3 threads, handlers are 80 % busy. Other values: 0.8 x `num.io.threads` / (`num.io.threads`
      // + `num.network.threads`).
      REQUEST_CAPACITY: 0.6,
      // ratio: request time that no quota counts / threads of the broker. Reason: clients get less than half of
      // the handlers' time. Other values: higher on brokers that mostly replicate.
      EXEMPT_CAPACITY: 0.4,
      // ratio: share of 5 minutes in which the request handlers of a broker or controller were idle. Reason:
      // every request waits for a handler. Other values: 0.3 for clients that need answers within milliseconds.
      HANDLERS_IDLE: 0.1,
      // s: average delay before a listener accepts a connection. Reason: twenty in a row reach the clients'
      // timeout of 10 s. Other values: lower if clients connect for each request.
      CONNECTION_THROTTLE: 0.5,
      // s: average delay of refused connections of an address. Reason: any delay is a refusal. Other values:
      // raise the limit of the address instead.
      IP_CONNECTION_THROTTLE: 0,
      // ratio: share of the last day with a replication throttle. Reason: reassignments end within a day. Other
      // values: 0.5 if they take hours.
      REPLICATION_DAY: 0.95,
      // bytes/s: traffic from which shares are compared. Reason: a tenth of a 1 Gbit/s network. Other values: a
      // tenth of your network or disk rate.
      HEAVY_BYTES: 10000000,
      // ratio: share of the cluster's traffic of an entity without a limit. Reason: if it doubles, all clients
      // notice. Other values: higher with few applications.
      HEAVY_SHARE: 0.2,
      // s: average throttle time of a platform program. Reason: others wait for operators and registries. Other
      // values: higher if their delay does not matter.
      SYSTEM_THROTTLED: 0.1,
      // ratio: share of reads that succeed, 15 minutes. Reason: restarts take four minutes. Other values: lower
      // if brokers restart slowly.
      SOURCE_READS: 0.75,
      // s: average duration of reads, 15 minutes. Reason: scrapes show older values. Other values: 0.8 x
      // `scrape_timeout`.
      READ_SECONDS: 8,
      // ratio: samples missed / samples taken. Reason: peaks are missing. Other values: lower if peaks matter.
      SAMPLES_LEFT_OUT: 0.1,
      // s: age of the configured limits. Reason: thirty failed reads by default. Other values: above ten times
      // `kafka.refresh_interval_seconds`.
      LIMITS_AGE: 900,
      // s: age of the values shown. Reason: scrapes show old values. Other values: above three times
      // `collection.max_age_seconds`.
      SNAPSHOT_AGE: 300,
      // failures: failed discoveries in 15 minutes. Reason: a broker's restart causes one or two. Other values:
      // below the discoveries in 15 minutes.
      DISCOVERY_FAILURES: 3,
      // s/s: throttle time of a job per second. Reason: one of five tasks only waits. Other values: higher for
      // hundreds of tasks, lower with a deadline.
      SPARK_THROTTLED: 0.2,
      // attempts: attempts repeated within 30 minutes because of a quota. Reason: the next failure ends the job
      // with `spark.task.maxFailures` 4. Other values: below `spark.task.maxFailures`.
      SPARK_RETRIES: 3,
      // s: time since a query reported progress. Reason: Spark reports after each batch and every 10 s without
      // data. Other values: higher for real-time batches under Spark Connect.
      SPARK_STALLED: 600,
      // intervals: the same in intervals of its trigger. Reason: a real-time batch lasts one. Other values:
      // lower for hours.
      SPARK_STALLED_TRIGGERS: 3,
      // times: throttled share of an hour, and of 5 minutes / budget of the objective. Reason: 2 % of a budget
      // of 30 days in an hour. Other values: 36 for 5 %.
      BURN_FAST: 14.4,
      // times: the same of 6 hours, and of 30 minutes. Reason: 5 % of the budget in 6 hours. Other values: 12
      // for 10 %.
      BURN: 6,
      // times: the same of 3 days, and of 6 hours. Reason: 10 % of the budget in 3 days. Other values: 2 for 20
      // %.
      BURN_SLOW: 1,
    },
    // Each alert; severity: critical, warning or info; keep_firing_for may be null.
    alerts: {
      // Clients of a cluster are throttled for far longer than usual.
      KafkaQuotaThrottleSpike: {
        enabled: true,
        severity: "critical",
        'for': "5m",
        keep_firing_for: "10m",
        labels: {},
      },
      // Far more clients of a cluster are throttled than usual.
      KafkaQuotaManyClientsThrottled: {
        enabled: true,
        severity: "critical",
        'for': "5m",
        keep_firing_for: "10m",
        labels: {},
      },
      // Too many clients are throttled for an alert each.
      KafkaQuotaThrottleStorm: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A client is throttled by its produce quota for a long time.
      KafkaQuotaProduceThrottled: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A client is throttled by its fetch quota for a long time.
      KafkaQuotaFetchThrottled: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A client is throttled by its request quota for a long time.
      KafkaQuotaRequestThrottled: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A client is throttled when it creates or deletes topics.
      KafkaQuotaMutationThrottled: {
        enabled: true,
        severity: "info",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A client is throttled for longer than clients wait for an answer.
      KafkaQuotaThrottleBeyondClientTimeout: {
        enabled: true,
        severity: "warning",
        'for': "4m",
        keep_firing_for: "5m",
        labels: {},
      },
      // Clients of a custom quota callback are throttled.
      KafkaQuotaCallbackThrottled: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A client that is not throttled uses almost all of its quota.
      KafkaQuotaNearLimit: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // Too many clients are near their limits for an alert each.
      KafkaQuotaManyNearLimit: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // By its trend, a client will reach its quota within hours.
      KafkaQuotaLimitPredicted: {
        enabled: true,
        severity: "info",
        'for': "30m",
        keep_firing_for: "30m",
        labels: {},
      },
      // A quota that is not set would throttle a client.
      KafkaQuotaShadowThrottlesClient: {
        enabled: true,
        severity: "info",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A quota that is not set would throttle many clients.
      KafkaQuotaShadowThrottlesMany: {
        enabled: true,
        severity: "info",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A client's tokens to create or delete topics are used up.
      KafkaQuotaMutationTokensExhausted: {
        enabled: true,
        severity: "warning",
        'for': "10m",
        keep_firing_for: "10m",
        labels: {},
      },
      // More and more requests to change topics are refused.
      KafkaQuotaRefusalsRising: {
        enabled: true,
        severity: "warning",
        'for': "10m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A broker mutes more and more connections.
      KafkaQuotaDelayQueueGrowing: {
        enabled: true,
        severity: "warning",
        'for': "10m",
        keep_firing_for: "15m",
        labels: {},
      },
      // The request handlers of a broker are hardly ever idle.
      KafkaQuotaBrokerSaturated: {
        enabled: true,
        severity: "critical",
        'for': "5m",
        keep_firing_for: "10m",
        labels: {},
      },
      // The threads of a broker are almost always busy.
      KafkaQuotaRequestTimeNearCapacity: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "15m",
        labels: {},
      },
      // A broker is busy with work that no quota limits.
      KafkaQuotaExemptRequestTimeHigh: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "15m",
        labels: {},
      },
      // Clients wait to connect because of a limit on new connections.
      KafkaQuotaConnectionsThrottled: {
        enabled: true,
        severity: "warning",
        'for': "10m",
        keep_firing_for: "10m",
        labels: {},
      },
      // Connections of some IP addresses are refused for exceeding their limit.
      KafkaQuotaConnectionsOfAddressRefused: {
        enabled: true,
        severity: "info",
        'for': "15m",
        keep_firing_for: "15m",
        labels: {},
      },
      // A replication throttle has been on for a day.
      KafkaQuotaReplicationThrottleLeftOn: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "1h",
        labels: {},
      },
      // A client without a limit has a large part of the traffic.
      KafkaQuotaHeavyClientWithoutLimit: {
        enabled: true,
        severity: "info",
        'for': "30m",
        keep_firing_for: "30m",
        labels: {},
      },
      // One of the platform's own programs is throttled by a default quota.
      KafkaQuotaSystemUserThrottledByDefault: {
        enabled: true,
        severity: "warning",
        'for': "10m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A quota was set, changed or removed.
      KafkaQuotaRuleChanged: {
        enabled: true,
        severity: "info",
        'for': "1m",
        keep_firing_for: null,
        labels: {},
      },
      // No quotascope exporter of a cluster can be scraped.
      KafkaQuotaExporterAbsent: {
        enabled: true,
        severity: "warning",
        'for': "10m",
        keep_firing_for: null,
        labels: {},
      },
      // One of several exporters is missing.
      KafkaQuotaExporterMissing: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: null,
        labels: {},
      },
      // The recording rules do not run.
      KafkaQuotaRecordingRulesMissing: {
        enabled: true,
        severity: "warning",
        'for': "10m",
        keep_firing_for: null,
        labels: {},
      },
      // quotascope cannot read a broker or controller.
      KafkaQuotaSourceDown: {
        enabled: true,
        severity: "warning",
        'for': "10m",
        keep_firing_for: null,
        labels: {},
      },
      // A source answers, but has no values.
      KafkaQuotaSourceEmpty: {
        enabled: true,
        severity: "warning",
        'for': "30m",
        keep_firing_for: null,
        labels: {},
      },
      // Reads are so slow that scrapes show older values.
      KafkaQuotaReadsSlow: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "15m",
        labels: {},
      },
      // quotascope cannot read the configured quotas.
      KafkaQuotaLimitsStale: {
        enabled: true,
        severity: "warning",
        'for': "5m",
        keep_firing_for: null,
        labels: {},
      },
      // A broker and quotascope disagree about the utilization of quotas.
      KafkaQuotaUtilizationDisagrees: {
        enabled: true,
        severity: "info",
        'for': "30m",
        keep_firing_for: null,
        labels: {},
      },
      // quotascope shows old values.
      KafkaQuotaSnapshotStale: {
        enabled: true,
        severity: "warning",
        'for': "5m",
        keep_firing_for: null,
        labels: {},
      },
      // quotascope sees more clients than it may show.
      KafkaQuotaSeriesDropped: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: null,
        labels: {},
      },
      // quotascope cannot discover the brokers.
      KafkaQuotaDiscoveryFailing: {
        enabled: true,
        severity: "warning",
        'for': "5m",
        keep_firing_for: "15m",
        labels: {},
      },
      // Samples between scrapes are left out.
      KafkaQuotaSamplesMissed: {
        enabled: true,
        severity: "info",
        'for': "15m",
        keep_firing_for: "15m",
        labels: {},
      },
      // quotascope cannot push to the OpenTelemetry collector.
      KafkaQuotaPushFailing: {
        enabled: true,
        severity: "warning",
        'for': "5m",
        keep_firing_for: null,
        labels: {},
      },
      // quotascope works with an old configuration.
      KafkaQuotaConfigurationRefused: {
        enabled: true,
        severity: "warning",
        'for': "5m",
        keep_firing_for: null,
        labels: {},
      },
      // A Spark job is throttled by Kafka's quotas.
      KafkaQuotaSparkJobThrottled: {
        enabled: true,
        severity: "warning",
        'for': "15m",
        keep_firing_for: "10m",
        labels: {},
      },
      // Tasks of a Spark job are repeated because of Kafka's quotas.
      KafkaQuotaSparkRetries: {
        enabled: true,
        severity: "warning",
        'for': "5m",
        keep_firing_for: "10m",
        labels: {},
      },
      // quotascope's Spark listener loses events.
      KafkaQuotaSparkEventsLost: {
        enabled: true,
        severity: "info",
        'for': "5m",
        keep_firing_for: "10m",
        labels: {},
      },
      // A streaming query stands still while Kafka throttles it.
      KafkaQuotaSparkQueryStalled: {
        enabled: true,
        severity: "warning",
        'for': "5m",
        keep_firing_for: "10m",
        labels: {},
      },
    },
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

  assert check(isName(c.cluster_label) && !(false && c.cluster_label == 'owner'), 'cluster_label', 'cannot be a label: letters, digits and underscores only, and no label of these rules'),
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
      {
        name: "quotascope-entities",
        rules: [
          { record: "entity:kafka_quota_throttle_time_seconds:max", expr: "max by (" + label + ", quota_type, user, client_id) (\n  (\n    (kafka_quota_throttle_time_seconds > 0)\n    unless on (" + label + ", quota_type, broker, user, client_id)\n    (kafka_quota_throttle_cause_info{quota_type=\"request\",cause=\"controller_mutation\"})\n  )\n  or\n  label_replace(\n    (kafka_quota_throttle_time_seconds{quota_type=\"request\"} > 0)\n    and on (" + label + ", quota_type, broker, user, client_id)\n    (kafka_quota_throttle_cause_info{quota_type=\"request\",cause=\"controller_mutation\"}),\n    \"quota_type\",\n    \"controller_mutation\",\n    \"\",\n    \"\"\n  )\n)" },
          { record: "entity:kafka_quota_utilization_ratio:max", expr: "max by (" + label + ", quota_type, user, client_id) (kafka_quota_utilization_ratio)" },
          { record: "entity:kafka_quota_headroom_ratio:min", expr: "1 - entity:kafka_quota_utilization_ratio:max" },
          { record: "entity:kafka_quota_produce_bytes_per_second:sum", expr: "sum by (" + label + ", user, client_id) (\n  max by (" + label + ", broker, user, client_id) (kafka_quota_produce_bytes_per_second)\n)" },
          { record: "entity:kafka_quota_fetch_bytes_per_second:sum", expr: "sum by (" + label + ", user, client_id) (\n  max by (" + label + ", broker, user, client_id) (kafka_quota_fetch_bytes_per_second)\n)" },
          { record: "entity:kafka_quota_request_threads:sum", expr: "sum by (" + label + ", user, client_id) (\n  max by (" + label + ", broker, user, client_id) (kafka_quota_request_threads)\n)" },
          { record: "user:kafka_quota_bytes_per_second:sum", expr: "sum by (" + label + ", user) (\n  label_replace(sum by (" + label + ", user) (entity:kafka_quota_produce_bytes_per_second:sum), \"side\", \"produce\", \"\", \"\")\n  or\n  label_replace(sum by (" + label + ", user) (entity:kafka_quota_fetch_bytes_per_second:sum >= 0), \"side\", \"fetch\", \"\", \"\")\n)" },
          { record: "cluster:kafka_quota_bytes_per_second:sum", expr: "sum by (" + label + ") (user:kafka_quota_bytes_per_second:sum)" },
        ],
      },
      {
        name: "quotascope-trends",
        interval: "2m",
        rules: [
          { record: "entity:kafka_quota_utilization_ratio:avg30m", expr: "max by (" + label + ", quota_type, user, client_id) (\n  (\n    (\n      avg by (" + label + ", quota_type, broker, user, client_id) (\n        avg_over_time(kafka_quota_utilization_ratio[30m])\n      )\n    )\n    and on (" + label + ", quota_type, broker, user, client_id)\n    (kafka_quota_utilization_ratio)\n  )\n  and on (" + label + ", quota_type, broker, user, client_id)\n  (present_over_time(kafka_quota_utilization_ratio[5m] offset 25m))\n)" },
          { record: "entity:kafka_quota_utilization_ratio:predict3h", expr: "(predict_linear(entity:kafka_quota_utilization_ratio:avg30m[6h], 3.25 * 3600))\nand on (" + label + ", quota_type, user, client_id)\n(present_over_time(entity:kafka_quota_utilization_ratio:avg30m[10m] offset 4h))" },
        ],
      },
      {
        name: "quotascope-brokers",
        rules: [
          { record: "broker:kafka_quota_exempt_request_threads:max", expr: "max by (" + label + ", broker) (kafka_quota_exempt_request_threads)" },
          { record: "broker:kafka_quota_request_threads:sum", expr: "sum by (" + label + ", broker) (max by (" + label + ", broker, user, client_id) (kafka_quota_request_threads))" },
          { record: "broker:kafka_quota_request_capacity_threads:max", expr: "max by (" + label + ", broker) (kafka_quota_request_capacity_threads)" },
          { record: "broker:kafka_quota_request_capacity_used:ratio", expr: "(\n  broker:kafka_quota_request_threads:sum\n  + on (" + label + ", broker)\n  broker:kafka_quota_exempt_request_threads:max\n)\n/ on (" + label + ", broker)\n(broker:kafka_quota_request_capacity_threads:max > 0)" },
          { record: "broker:kafka_quota_request_handler_idle:ratio5m", expr: "min by (" + label + ", broker) (rate(kafka_quota_request_handler_pool_idle_time_seconds_total[5m]))\nor\nmin by (" + label + ", broker) (rate(kafka_quota_request_handler_idle_time_seconds_total[5m]))" },
          { record: "broker:kafka_quota_delay_queue_size:max", expr: "max by (" + label + ", quota_type, broker) (kafka_quota_delay_queue_size)" },
          { record: "broker:kafka_quota_request_throttled_seconds:rate5m", expr: "sum by (" + label + ", broker) (\n  max by (" + label + ", broker, request) (rate(kafka_quota_request_throttled_seconds_total[5m]))\n)" },
        ],
      },
      {
        name: "quotascope-clusters",
        rules: [
          { record: "cluster:kafka_quota_request_throttled_seconds:rate5m", expr: "sum by (" + label + ") (broker:kafka_quota_request_throttled_seconds:rate5m)" },
          { record: "cluster:kafka_quota_throttled_entities:count", expr: "max by (" + label + ") (\n  label_replace(\n    count by (" + label + ") (\n      group by (" + label + ", user, client_id) (\n        (\n          max_over_time(entity:kafka_quota_throttle_time_seconds:max[16m]) > 1020\n          or\n          max_over_time(entity:kafka_quota_throttle_time_seconds:max[8m]) > 540\n          or\n          max_over_time(entity:kafka_quota_throttle_time_seconds:max[4m]) > 300\n          or\n          max_over_time(entity:kafka_quota_throttle_time_seconds:max[2m]) > 180\n          or\n          max_over_time(entity:kafka_quota_throttle_time_seconds:max[1m]) > 120\n          or\n          entity:kafka_quota_throttle_time_seconds:max\n        )\n        >\n        " + exact(c.thresholds.THROTTLED) + "\n      )\n    ),\n    \"of\",\n    \"clients\",\n    \"\",\n    \"\"\n  )\n  or\n  label_replace(\n    max by (" + label + ") (\n      count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n    ),\n    \"of\",\n    \"callback\",\n    \"\",\n    \"\"\n  )\n)\nor\n0 * group by (" + label + ") (quotascope_build_info)" },
          { record: "cluster:kafka_quota_delay_queue_size:sum", expr: "sum by (" + label + ", quota_type) (broker:kafka_quota_delay_queue_size:max)" },
          { record: "cluster:kafka_quota_throttling_errors:rate5m", expr: "sum by (" + label + ", request) (\n  max by (" + label + ", broker, request) (rate(kafka_quota_throttling_errors_total[5m]))\n)" },
        ],
      },
      {
        name: "quotascope-baselines",
        interval: "2m",
        rules: [
          { record: "cluster:kafka_quota_request_throttled_seconds:baseline", expr: "(\n  (last_over_time(cluster:kafka_quota_request_throttled_seconds:baseline[1h]))\n  and on (" + label + ")\n  (\n    (ALERTS{alertname=\"KafkaQuotaThrottleSpike\",alertstate=\"firing\"})\n    unless on (" + label + ")\n    (ALERTS{alertname=\"KafkaQuotaThrottleSpike\",alertstate=\"firing\"} offset 1w)\n  )\n)\nor\nmax by (" + label + ") (\n  label_replace(avg_over_time(cluster:kafka_quota_request_throttled_seconds:rate5m[1d] offset 30m), \"of\", \"day\", \"\", \"\")\n  or\n  label_replace(max_over_time(cluster:kafka_quota_request_throttled_seconds:rate5m[2h] offset 23h), \"of\", \"yesterday\", \"\", \"\")\n  or\n  label_replace(max_over_time(cluster:kafka_quota_request_throttled_seconds:rate5m[2h] offset 167h), \"of\", \"week\", \"\", \"\")\n)" },
          { record: "cluster:kafka_quota_throttled_entities:baseline", expr: "(\n  (last_over_time(cluster:kafka_quota_throttled_entities:baseline[1h]))\n  and on (" + label + ")\n  (\n    (ALERTS{alertname=\"KafkaQuotaManyClientsThrottled\",alertstate=\"firing\"})\n    unless on (" + label + ")\n    (ALERTS{alertname=\"KafkaQuotaManyClientsThrottled\",alertstate=\"firing\"} offset 1w)\n  )\n)\nor\nmax by (" + label + ") (\n  label_replace(avg_over_time(cluster:kafka_quota_throttled_entities:count[1d] offset 30m), \"of\", \"day\", \"\", \"\")\n  or\n  label_replace(max_over_time(cluster:kafka_quota_throttled_entities:count[2h] offset 23h), \"of\", \"yesterday\", \"\", \"\")\n  or\n  label_replace(max_over_time(cluster:kafka_quota_throttled_entities:count[2h] offset 167h), \"of\", \"week\", \"\", \"\")\n)" },
          { record: "cluster:kafka_quota_throttling_errors:baseline", expr: "(\n  (last_over_time(cluster:kafka_quota_throttling_errors:baseline[1h]))\n  and on (" + label + ", request)\n  (\n    (ALERTS{alertname=\"KafkaQuotaRefusalsRising\",alertstate=\"firing\"})\n    unless on (" + label + ", request)\n    (ALERTS{alertname=\"KafkaQuotaRefusalsRising\",alertstate=\"firing\"} offset 1w)\n  )\n)\nor\nsum_over_time(cluster:kafka_quota_throttling_errors:rate5m[1d] offset 30m)\n/ on (" + label + ") group_left ()\n(count_over_time(cluster:kafka_quota_throttled_entities:count[1d] offset 30m) > 0)" },
          { record: "cluster:quotascope_exporters:baseline", expr: "(\n  (last_over_time(cluster:quotascope_exporters:baseline[1h]))\n  and on (" + label + ")\n  (\n    (\n      (ALERTS{alertname=\"KafkaQuotaExporterMissing\",alertstate=\"firing\"})\n      unless on (" + label + ")\n      (ALERTS{alertname=\"KafkaQuotaExporterMissing\",alertstate=\"firing\"} offset 1w)\n    )\n    and on (" + label + ")\n    ((last_over_time(quotascope_build_info[1w])) and on (job, instance) (up == 0))\n  )\n)\nor\nquantile_over_time(0.5, (count by (" + label + ") (group by (" + label + ", instance) (quotascope_build_info)))[1d:5m])" },
        ],
      },
      {
        name: "quotascope-jobs",
        rules: [
          { record: "app:spark_kafka_throttled_seconds:rate10m", expr: "sum by (" + label + ", app, query, side) (\n  max by (" + label + ", app, query, side, user, client_id) (\n    (\n      (\n        (\n          last_over_time(spark_kafka_throttled_seconds_total[10m])\n          unless\n          spark_kafka_throttled_seconds_total offset 10m\n        )\n        unless\n        (\n          last_over_time(spark_kafka_throttled_seconds_total[10m])\n          >=\n          last_over_time(spark_kafka_throttled_seconds_total[1h] offset 10m)\n        )\n      )\n      or\n      increase(spark_kafka_throttled_seconds_total[10m])\n    ) / (10 * 60)\n  )\n)" },
        ],
      },
    ],
  },

  prometheusAlerts+:: {
    groups+: written([
      {
        name: "quotascope-cluster-wide",
        rules: [
          alert("KafkaQuotaThrottleSpike", {
            expr: "(\n  (\n    (cluster:kafka_quota_request_throttled_seconds:rate5m > " + exact(c.thresholds.SPIKE) + ")\n    and on (" + label + ")\n    (\n      cluster:kafka_quota_request_throttled_seconds:rate5m\n      > on (" + label + ")\n      (" + exact(c.thresholds.SPIKE_FACTOR) + " * cluster:kafka_quota_request_throttled_seconds:baseline)\n    )\n  )\n  and on (" + label + ")\n  (cluster:kafka_quota_throttled_entities:count >= " + exact(c.thresholds.SPIKE_ENTITIES) + ")\n)\nunless on (" + label + ")\n(sum by (" + label + ") (max_over_time(cluster:kafka_quota_delay_queue_size:sum[5m])) == 0)",
            labels: {
              "scope": "cluster",
            },
            annotations: {
              "summary": "Clients of a cluster are throttled for far longer than usual.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Clients get {{ $value | printf `%.3g` }} s of throttle time in every second, as if that many connections did nothing but wait: more than " + short(c.thresholds.SPIKE_FACTOR) + " times as much as usual at this time. At least " + short(c.thresholds.SPIKE_ENTITIES) + " clients are throttled.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaThrottleSpike"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-overview?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaManyClientsThrottled", {
            expr: "(\n  (cluster:kafka_quota_throttled_entities:count >= " + exact(c.thresholds.MANY_ENTITIES) + ")\n  and on (" + label + ")\n  (\n    cluster:kafka_quota_throttled_entities:count\n    > on (" + label + ")\n    (" + exact(c.thresholds.MANY_ENTITIES_FACTOR) + " * cluster:kafka_quota_throttled_entities:baseline)\n  )\n)\nunless on (" + label + ")\n(sum by (" + label + ") (max_over_time(cluster:kafka_quota_delay_queue_size:sum[5m])) == 0)",
            labels: {
              "scope": "cluster",
            },
            annotations: {
              "summary": "Far more clients of a cluster are throttled than usual.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}{{ $value | printf `%.0f` }} clients are throttled at the same time: more than " + short(c.thresholds.MANY_ENTITIES_FACTOR) + " times as many as usual at this time. The cause is more likely a changed limit or a slow broker than the clients.{{ range $number, $_ := query (printf `topk(10, max by (user, client_id) (entity:kafka_quota_throttle_time_seconds:max{" + label + "=%q}))` $labels." + label + ") }}{{ if $number }}, {{ else }} Longest delays: {{ end }}{{ with .Labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and .Labels.user .Labels.client_id }} with {{ end }}{{ with .Labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or .Labels.user .Labels.client_id) }}the client without a name{{ end }} {{ .Value | humanizeDuration }}{{ end }}",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaManyClientsThrottled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-overview?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaThrottleStorm", {
            expr: "(cluster:kafka_quota_throttled_entities:count > " + exact(c.thresholds.STORM) + ")\nunless on (" + label + ")\n(\n  (\n    max by (" + label + ") (\n      count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n    )\n  )\n  >\n  " + exact(c.thresholds.STORM) + "\n)",
            labels: {
              "scope": "cluster",
            },
            annotations: {
              "summary": "Too many clients are throttled for an alert each.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}{{ $value | printf `%.0f` }} clients are throttled, too many for an alert each.{{ range $number, $_ := query (printf `topk(10, max by (user, client_id) (entity:kafka_quota_throttle_time_seconds:max{" + label + "=%q}))` $labels." + label + ") }}{{ if $number }}, {{ else }} Longest delays: {{ end }}{{ with .Labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and .Labels.user .Labels.client_id }} with {{ end }}{{ with .Labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or .Labels.user .Labels.client_id) }}the client without a name{{ end }} {{ .Value | humanizeDuration }}{{ end }}",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaThrottleStorm"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-overview?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-throttled",
        rules: [
          alert("KafkaQuotaProduceThrottled", {
            expr: if !c.alerts.KafkaQuotaManyNearLimit.enabled then "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"produce\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (min_over_time(cluster:kafka_quota_throttled_entities:count[" + window("KafkaQuotaProduceThrottled") + "]) > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"produce\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else if !c.alerts.KafkaQuotaThrottleStorm.enabled then "(entity:kafka_quota_throttle_time_seconds:max{quota_type=\"produce\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"produce\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else if window("KafkaQuotaProduceThrottled") == null then "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"produce\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (cluster:kafka_quota_throttled_entities:count > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"produce\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"produce\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (min_over_time(cluster:kafka_quota_throttled_entities:count[" + window("KafkaQuotaProduceThrottled") + "]) > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"produce\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A client is throttled by its produce quota for a long time.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Requests to produce of {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} are delayed by {{ $value | humanizeDuration }} on average: it wants more than its produce quota allows.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaProduceThrottled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-entity?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
          alert("KafkaQuotaFetchThrottled", {
            expr: if !c.alerts.KafkaQuotaManyNearLimit.enabled then "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"fetch\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (min_over_time(cluster:kafka_quota_throttled_entities:count[" + window("KafkaQuotaFetchThrottled") + "]) > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"fetch\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else if !c.alerts.KafkaQuotaThrottleStorm.enabled then "(entity:kafka_quota_throttle_time_seconds:max{quota_type=\"fetch\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"fetch\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else if window("KafkaQuotaFetchThrottled") == null then "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"fetch\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (cluster:kafka_quota_throttled_entities:count > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"fetch\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"fetch\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (min_over_time(cluster:kafka_quota_throttled_entities:count[" + window("KafkaQuotaFetchThrottled") + "]) > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"fetch\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A client is throttled by its fetch quota for a long time.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Requests to fetch of {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} are delayed by {{ $value | humanizeDuration }} on average: it wants more than its fetch quota allows.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaFetchThrottled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-entity?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
          alert("KafkaQuotaRequestThrottled", {
            expr: if !c.alerts.KafkaQuotaManyNearLimit.enabled then "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"request\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (min_over_time(cluster:kafka_quota_throttled_entities:count[" + window("KafkaQuotaRequestThrottled") + "]) > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"request\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else if !c.alerts.KafkaQuotaThrottleStorm.enabled then "(entity:kafka_quota_throttle_time_seconds:max{quota_type=\"request\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"request\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else if window("KafkaQuotaRequestThrottled") == null then "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"request\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (cluster:kafka_quota_throttled_entities:count > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"request\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)" else "(\n  (entity:kafka_quota_throttle_time_seconds:max{quota_type=\"request\",user!=\"__overflow__\"} > " + exact(c.thresholds.THROTTLED) + ")\n  unless on (" + label + ")\n  (\n    (min_over_time(cluster:kafka_quota_throttled_entities:count[" + window("KafkaQuotaRequestThrottled") + "]) > " + exact(c.thresholds.STORM) + ")\n    unless on (" + label + ")\n    (\n      (\n        max by (" + label + ") (\n          count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n        )\n      )\n      >\n      " + exact(c.thresholds.STORM) + "\n    )\n  )\n)\nunless on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    avg by (" + label + ", quota_type, broker, user, client_id) (\n      avg_over_time(kafka_quota_utilization_ratio{quota_type=\"request\"}[15m])\n    )\n  )\n  <\n  " + exact(c.thresholds.PERSISTENT) + "\n)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A client is throttled by its request quota for a long time.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Requests of {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} are delayed by {{ $value | humanizeDuration }} on average: it wants more than its request quota allows.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaRequestThrottled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-entity?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
          alert("KafkaQuotaMutationThrottled", {
            expr: if !c.alerts.KafkaQuotaManyNearLimit.enabled then "(\n  entity:kafka_quota_throttle_time_seconds:max{quota_type=\"controller_mutation\",user!=\"__overflow__\"}\n  >\n  " + exact(c.thresholds.MUTATION_THROTTLED) + "\n)\nunless on (" + label + ")\n(\n  (min_over_time(cluster:kafka_quota_throttled_entities:count[" + window("KafkaQuotaMutationThrottled") + "]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)" else if !c.alerts.KafkaQuotaThrottleStorm.enabled then "entity:kafka_quota_throttle_time_seconds:max{quota_type=\"controller_mutation\",user!=\"__overflow__\"}\n>\n" + exact(c.thresholds.MUTATION_THROTTLED) else if window("KafkaQuotaMutationThrottled") == null then "(\n  entity:kafka_quota_throttle_time_seconds:max{quota_type=\"controller_mutation\",user!=\"__overflow__\"}\n  >\n  " + exact(c.thresholds.MUTATION_THROTTLED) + "\n)\nunless on (" + label + ")\n(\n  (cluster:kafka_quota_throttled_entities:count > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)" else "(\n  entity:kafka_quota_throttle_time_seconds:max{quota_type=\"controller_mutation\",user!=\"__overflow__\"}\n  >\n  " + exact(c.thresholds.MUTATION_THROTTLED) + "\n)\nunless on (" + label + ")\n(\n  (min_over_time(cluster:kafka_quota_throttled_entities:count[" + window("KafkaQuotaMutationThrottled") + "]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A client is throttled when it creates or deletes topics.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Requests of {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} to create, extend or delete topics are delayed by {{ $value | humanizeDuration }} on average: it wants more controller mutations than its quota allows.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaMutationThrottled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-mutations?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
          alert("KafkaQuotaThrottleBeyondClientTimeout", {
            expr: if !c.alerts.KafkaQuotaManyNearLimit.enabled then "(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"} > " + exact(c.thresholds.CLIENT_TIMEOUT) + ")\nunless on (" + label + ")\n(\n  (cluster:kafka_quota_throttled_entities:count > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[2m])\n    >\n    60\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[2m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[4m])\n    >\n    180\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[4m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[7m])\n    >\n    300\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[7m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[12m])\n    >\n    480\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[12m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[25m])\n    >\n    780\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[25m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)" else if !c.alerts.KafkaQuotaThrottleStorm.enabled then "entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"} > " + exact(c.thresholds.CLIENT_TIMEOUT) + "\nor\n(\n  max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[2m])\n  >\n  60\n)\n>\n" + exact(c.thresholds.CLIENT_TIMEOUT) + "\nor\n(\n  max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[4m])\n  >\n  180\n)\n>\n" + exact(c.thresholds.CLIENT_TIMEOUT) + "\nor\n(\n  max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[7m])\n  >\n  300\n)\n>\n" + exact(c.thresholds.CLIENT_TIMEOUT) + "\nor\n(\n  max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[12m])\n  >\n  480\n)\n>\n" + exact(c.thresholds.CLIENT_TIMEOUT) + "\nor\n(\n  max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[25m])\n  >\n  780\n)\n>\n" + exact(c.thresholds.CLIENT_TIMEOUT) else "(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"} > " + exact(c.thresholds.CLIENT_TIMEOUT) + ")\nunless on (" + label + ")\n(\n  (cluster:kafka_quota_throttled_entities:count > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[2m])\n    >\n    60\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[2m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[4m])\n    >\n    180\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[4m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[7m])\n    >\n    300\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[7m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[12m])\n    >\n    480\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[12m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)\nor\n(\n  (\n    max_over_time(entity:kafka_quota_throttle_time_seconds:max{quota_type=~\"produce|fetch\",user!=\"__overflow__\"}[25m])\n    >\n    780\n  )\n  >\n  " + exact(c.thresholds.CLIENT_TIMEOUT) + "\n)\nunless on (" + label + ")\n(\n  (max_over_time(cluster:kafka_quota_throttled_entities:count[25m]) > " + exact(c.thresholds.STORM) + ")\n  unless on (" + label + ")\n  (\n    (\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (kafka_quota_callback_throttle_time_seconds > " + exact(c.thresholds.THROTTLED) + ")\n      )\n    )\n    >\n    " + exact(c.thresholds.STORM) + "\n  )\n)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A client is throttled for longer than clients wait for an answer.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Requests of {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} are delayed by {{ $value | humanizeDuration }} on average because of its {{ $labels.quota_type }} quota. Many clients give up after " + short(c.thresholds.CLIENT_TIMEOUT) + " s: producers may lose records, consumers may leave their group.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaThrottleBeyondClientTimeout"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-entity?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-callbacks",
        rules: [
          alert("KafkaQuotaCallbackThrottled", {
            expr: "max by (" + label + ", quota_type, broker) (kafka_quota_callback_throttle_time_seconds) > " + exact(c.thresholds.THROTTLED),
            labels: {
              "scope": "broker",
            },
            annotations: {
              "summary": "Clients of a custom quota callback are throttled.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The custom quota callback of broker {{ $labels.broker }} delays {{ $labels.quota_type }} requests, by {{ $value | humanizeDuration }} on average for the slowest client.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaCallbackThrottled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-overview?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-near-limit",
        interval: "2m",
        rules: [
          alert("KafkaQuotaNearLimit", {
            expr: if !c.alerts.KafkaQuotaManyNearLimit.enabled then "(\n  (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n  and on (" + label + ", quota_type, user, client_id)\n  (entity:kafka_quota_utilization_ratio:max)\n)\nunless on (" + label + ", quota_type, user, client_id)\n(present_over_time(entity:kafka_quota_throttle_time_seconds:max[30m]))" else if !c.alerts.KafkaQuotaThrottleStorm.enabled then "(\n  (\n    (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n    and on (" + label + ", quota_type, user, client_id)\n    (entity:kafka_quota_utilization_ratio:max)\n  )\n  unless on (" + label + ", quota_type, user, client_id)\n  (present_over_time(entity:kafka_quota_throttle_time_seconds:max[30m]))\n)\nunless on (" + label + ")\n(\n  min_over_time(\n    (\n      count by (" + label + ") (\n        (\n          (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n          and on (" + label + ", quota_type, user, client_id)\n          (entity:kafka_quota_utilization_ratio:max)\n        )\n        unless on (" + label + ", quota_type, user, client_id)\n        (present_over_time(entity:kafka_quota_throttle_time_seconds:max[30m]))\n      )\n    )[" + window("KafkaQuotaNearLimit") + ":2m]\n  )\n  >\n  " + exact(c.thresholds.STORM) + "\n)" else if window("KafkaQuotaNearLimit") == null then "(\n  (\n    (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n    and on (" + label + ", quota_type, user, client_id)\n    (entity:kafka_quota_utilization_ratio:max)\n  )\n  unless on (" + label + ", quota_type, user, client_id)\n  (present_over_time(entity:kafka_quota_throttle_time_seconds:max[30m]))\n)\nunless on (" + label + ")\n(\n  count by (" + label + ") (\n    (\n      (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n      and on (" + label + ", quota_type, user, client_id)\n      (entity:kafka_quota_utilization_ratio:max)\n    )\n    unless on (" + label + ", quota_type, user, client_id)\n    (present_over_time(entity:kafka_quota_throttle_time_seconds:max[30m]))\n  )\n  >\n  " + exact(c.thresholds.STORM) + "\n)" else "(\n  (\n    (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n    and on (" + label + ", quota_type, user, client_id)\n    (entity:kafka_quota_utilization_ratio:max)\n  )\n  unless on (" + label + ", quota_type, user, client_id)\n  (present_over_time(entity:kafka_quota_throttle_time_seconds:max[30m]))\n)\nunless on (" + label + ")\n(\n  min_over_time(\n    (\n      count by (" + label + ") (\n        (\n          (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n          and on (" + label + ", quota_type, user, client_id)\n          (entity:kafka_quota_utilization_ratio:max)\n        )\n        unless on (" + label + ", quota_type, user, client_id)\n        (present_over_time(entity:kafka_quota_throttle_time_seconds:max[30m]))\n      )\n    )[" + window("KafkaQuotaNearLimit") + ":2m]\n  )\n  >\n  " + exact(c.thresholds.STORM) + "\n)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A client that is not throttled uses almost all of its quota.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Over half an hour, {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} used {{ $value | humanizePercentage }} of its {{ $labels.quota_type }} quota on its busiest broker and was not throttled: Kafka will throttle it there above 100%.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaNearLimit"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-entity?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
          alert("KafkaQuotaManyNearLimit", {
            expr: "count by (" + label + ") (\n  (\n    (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n    and on (" + label + ", quota_type, user, client_id)\n    (entity:kafka_quota_utilization_ratio:max)\n  )\n  unless on (" + label + ", quota_type, user, client_id)\n  (present_over_time(entity:kafka_quota_throttle_time_seconds:max[30m]))\n)\n>\n" + exact(c.thresholds.STORM),
            labels: {
              "scope": "cluster",
            },
            annotations: {
              "summary": "Too many clients are near their limits for an alert each.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Over half an hour, the utilization of {{ $value | printf `%.0f` }} quotas of clients that were not throttled was above " + short(c.thresholds.NEAR_LIMIT * 100) + "%. They have no alerts of their own.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaManyNearLimit"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-overview?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaLimitPredicted", {
            expr: "(\n  (\n    (entity:kafka_quota_utilization_ratio:predict3h > 1)\n    and on (" + label + ", quota_type, user, client_id)\n    (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.PREDICTION) + ")\n  )\n  unless on (" + label + ", quota_type, user, client_id)\n  (entity:kafka_quota_utilization_ratio:avg30m > " + exact(c.thresholds.NEAR_LIMIT) + ")\n)\nand on (" + label + ", quota_type, user, client_id)\n(entity:kafka_quota_utilization_ratio:max)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "By its trend, a client will reach its quota within hours.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}By the trend of the last six hours, {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} will use {{ $value | humanizePercentage }} of its {{ $labels.quota_type }} quota in three hours' time.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaLimitPredicted"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-entity?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-shadows",
        rules: [
          alert("KafkaQuotaShadowThrottlesClient", {
            expr: "(\n  max by (" + label + ", shadow, quota_type, user, client_id) (kafka_quota_shadow_throttle_time_seconds)\n  >\n  " + exact(c.thresholds.THROTTLED) + "\n)\nunless on (" + label + ", shadow, quota_type)\n(max by (" + label + ", shadow, quota_type) (kafka_quota_shadow_throttled_entities) > " + exact(c.thresholds.SHADOW_ENTITIES) + ")",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A quota that is not set would throttle a client.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}If {{ $labels.shadow | printf `%q` }} were set, requests of {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} would be delayed by {{ $value | humanizeDuration }} because of its {{ $labels.quota_type }} quota. No broker enforces it.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaShadowThrottlesClient"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-shadow?var-cluster={{ $labels." + label + " | urlquery }}&var-shadow={{ $labels.shadow | urlquery }}",
            },
          }),
          alert("KafkaQuotaShadowThrottlesMany", {
            expr: "max by (" + label + ", shadow, quota_type) (kafka_quota_shadow_throttled_entities) > " + exact(c.thresholds.SHADOW_ENTITIES),
            labels: {
              "scope": "cluster",
            },
            annotations: {
              "summary": "A quota that is not set would throttle many clients.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}If {{ $labels.shadow | printf `%q` }} were set, its {{ $labels.quota_type }} quotas would throttle {{ $value | printf `%.0f` }} clients on one broker. No broker enforces them.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaShadowThrottlesMany"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-shadow?var-cluster={{ $labels." + label + " | urlquery }}&var-shadow={{ $labels.shadow | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-mutations",
        rules: [
          alert("KafkaQuotaMutationTokensExhausted", {
            expr: "max by (" + label + ", user, client_id) (\n  (\n    (\n      avg by (" + label + ", broker, user, client_id) (\n        avg_over_time((kafka_quota_controller_mutation_tokens < bool 0)[15m:15s])\n      )\n    )\n    and on (" + label + ", broker, user, client_id)\n    (kafka_quota_controller_mutation_tokens offset 15m)\n  )\n  and on (" + label + ", broker, user, client_id)\n  (kafka_quota_controller_mutation_tokens)\n)\n>\n" + exact(c.thresholds.TOKENS_DEBT),
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A client's tokens to create or delete topics are used up.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The token bucket of {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} for controller mutations was in debt for {{ $value | humanizePercentage }} of the last 15 minutes: its requests to create, extend or delete topics are refused or delayed.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaMutationTokensExhausted"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-mutations?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
          alert("KafkaQuotaRefusalsRising", {
            expr: "(\n  (cluster:kafka_quota_throttling_errors:rate5m > " + exact(c.thresholds.REFUSALS) + ")\n  and on (" + label + ")\n  (cluster:kafka_quota_throttled_entities:baseline)\n)\nunless on (" + label + ", request)\n(\n  cluster:kafka_quota_throttling_errors:rate5m\n  <= on (" + label + ", request)\n  (" + exact(c.thresholds.REFUSALS_FACTOR) + " * cluster:kafka_quota_throttling_errors:baseline)\n)",
            labels: {
              "scope": "cluster",
            },
            annotations: {
              "summary": "More and more requests to change topics are refused.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}{{ $value | printf `%.3g` }} requests {{ $labels.request }} per second are answered with THROTTLING_QUOTA_EXCEEDED, more than " + short(c.thresholds.REFUSALS_FACTOR) + " times as many as yesterday (KRaft counts each twice): a client repeats them without waiting.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaRefusalsRising"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-mutations?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-brokers-busy",
        rules: [
          alert("KafkaQuotaDelayQueueGrowing", {
            expr: "(\n  (avg by (" + label + ", quota_type, broker) (avg_over_time(kafka_quota_delay_queue_size[10m])) > " + exact(c.thresholds.DELAY_QUEUE) + ")\n  and on (" + label + ", quota_type, broker)\n  (broker:kafka_quota_delay_queue_size:max > " + exact(c.thresholds.DELAY_QUEUE) + ")\n)\nand on (" + label + ", quota_type, broker)\n(\n  avg by (" + label + ", quota_type, broker) (avg_over_time(kafka_quota_delay_queue_size[10m]))\n  > on (" + label + ", quota_type, broker)\n  (" + exact(c.thresholds.DELAY_QUEUE_GROWTH) + " * avg by (" + label + ", quota_type, broker) (avg_over_time(kafka_quota_delay_queue_size[10m] offset 30m)))\n)",
            labels: {
              "scope": "broker",
            },
            annotations: {
              "summary": "A broker mutes more and more connections.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Broker {{ $labels.broker }} has muted {{ $value | printf `%.0f` }} connections because of {{ $labels.quota_type }} quotas; half an hour ago, it had muted far fewer.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaDelayQueueGrowing"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-brokers?var-cluster={{ $labels." + label + " | urlquery }}&var-broker={{ $labels.broker | urlquery }}",
            },
          }),
          alert("KafkaQuotaBrokerSaturated", {
            expr: "broker:kafka_quota_request_handler_idle:ratio5m < " + exact(c.thresholds.HANDLERS_IDLE),
            labels: {
              "scope": "broker",
            },
            annotations: {
              "summary": "The request handlers of a broker are hardly ever idle.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The request handlers of broker {{ $labels.broker }} are idle for {{ $value | humanizePercentage }} of their time: requests of all clients wait for them.{{ range $number, $_ := query (printf `topk(10, max by (user, client_id) (kafka_quota_request_threads{" + label + "=%q,broker=%q} > 0))` $labels." + label + " $labels.broker) }}{{ if $number }}, {{ else }} Most request time: {{ end }}{{ with .Labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and .Labels.user .Labels.client_id }} with {{ end }}{{ with .Labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or .Labels.user .Labels.client_id) }}the client without a name{{ end }} {{ .Value | printf `%.2g` }} threads{{ else }} Which client takes it is unknown: no request quota makes the broker measure request time.{{ end }}",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaBrokerSaturated"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-brokers?var-cluster={{ $labels." + label + " | urlquery }}&var-broker={{ $labels.broker | urlquery }}",
            },
          }),
          alert("KafkaQuotaRequestTimeNearCapacity", {
            expr: "broker:kafka_quota_request_capacity_used:ratio > " + exact(c.thresholds.REQUEST_CAPACITY),
            labels: {
              "scope": "broker",
            },
            annotations: {
              "summary": "The threads of a broker are almost always busy.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The threads of broker {{ $labels.broker }} that serve requests are busy for {{ $value | humanizePercentage }} of their time: all clients get slower, throttled or not.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaRequestTimeNearCapacity"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-brokers?var-cluster={{ $labels." + label + " | urlquery }}&var-broker={{ $labels.broker | urlquery }}",
            },
          }),
          alert("KafkaQuotaExemptRequestTimeHigh", {
            expr: "(\n  broker:kafka_quota_exempt_request_threads:max\n  / on (" + label + ", broker)\n  (broker:kafka_quota_request_capacity_threads:max > 0)\n)\n>\n" + exact(c.thresholds.EXEMPT_CAPACITY),
            labels: {
              "scope": "broker",
            },
            annotations: {
              "summary": "A broker is busy with work that no quota limits.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Replication and other work between brokers takes {{ $value | humanizePercentage }} of the threads of broker {{ $labels.broker }}: no quota of clients can free them.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaExemptRequestTimeHigh"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-brokers?var-cluster={{ $labels." + label + " | urlquery }}&var-broker={{ $labels.broker | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-connections",
        rules: [
          alert("KafkaQuotaConnectionsThrottled", {
            expr: "max by (" + label + ", broker, listener) (kafka_quota_listener_connection_throttle_seconds > " + exact(c.thresholds.CONNECTION_THROTTLE) + ")",
            labels: {
              "scope": "broker",
            },
            annotations: {
              "summary": "Clients wait to connect because of a limit on new connections.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Listener {{ $labels.listener }} of broker {{ $labels.broker }} waits {{ $value | humanizeDuration }} on average before it accepts the next connection: all clients that connect there wait, not only the one that opens most connections.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaConnectionsThrottled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-brokers?var-cluster={{ $labels." + label + " | urlquery }}&var-broker={{ $labels.broker | urlquery }}",
            },
          }),
          alert("KafkaQuotaConnectionsOfAddressRefused", {
            expr: "max by (" + label + ", broker, listener) (kafka_quota_ip_connection_throttle_seconds > " + exact(c.thresholds.IP_CONNECTION_THROTTLE) + ")",
            labels: {
              "scope": "broker",
            },
            annotations: {
              "summary": "Connections of some IP addresses are refused for exceeding their limit.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Listener {{ $labels.listener }} of broker {{ $labels.broker }} refuses connections of some addresses, each after {{ $value | humanizeDuration }}: they open more connections than their limit allows.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaConnectionsOfAddressRefused"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-brokers?var-cluster={{ $labels." + label + " | urlquery }}&var-broker={{ $labels.broker | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-replication",
        interval: "2m",
        rules: [
          alert("KafkaQuotaReplicationThrottleLeftOn", {
            expr: "count by (" + label + ", direction) (\n  (\n    count_over_time(\n      (max by (" + label + ", broker, direction) (\n        kafka_quota_replication_limit_bytes_per_second{direction!=\"alter_log_dirs\"}\n      ))[1d:15m]\n    )\n    >=\n    " + exact(c.thresholds.REPLICATION_DAY * 96) + "\n  )\n  and on (" + label + ", broker, direction)\n  (kafka_quota_replication_limit_bytes_per_second{direction!=\"alter_log_dirs\"})\n)\n>\n0",
            labels: {
              "scope": "cluster",
            },
            annotations: {
              "summary": "A replication throttle has been on for a day.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}{{ $value | printf `%.0f` }} brokers have limited the replication of throttled replicas ({{ $labels.direction }}) for a day: most likely a reassignment ended without `--verify`, which removes the throttle. Replicas that fall behind may never catch up.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaReplicationThrottleLeftOn"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-brokers?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-traffic",
        rules: [
          alert("KafkaQuotaHeavyClientWithoutLimit", {
            expr: "(\n  (\n    label_replace(\n      (\n        (entity:kafka_quota_produce_bytes_per_second:sum{user!=\"__overflow__\"} > " + exact(c.thresholds.HEAVY_BYTES) + ")\n        and on (" + label + ", user, client_id)\n        (\n          (\n            entity:kafka_quota_produce_bytes_per_second:sum{user!=\"__overflow__\"}\n            / on (" + label + ") group_left ()\n            (cluster:kafka_quota_bytes_per_second:sum > 0)\n          )\n          >\n          " + exact(c.thresholds.HEAVY_SHARE) + "\n        )\n      )\n      unless on (" + label + ", user, client_id)\n      (kafka_quota_produce_limit_bytes_per_second),\n      \"quota_type\",\n      \"produce\",\n      \"\",\n      \"\"\n    )\n    or\n    label_replace(\n      (\n        (entity:kafka_quota_fetch_bytes_per_second:sum{user!=\"__overflow__\"} > " + exact(c.thresholds.HEAVY_BYTES) + ")\n        and on (" + label + ", user, client_id)\n        (\n          (\n            entity:kafka_quota_fetch_bytes_per_second:sum{user!=\"__overflow__\"}\n            / on (" + label + ") group_left ()\n            (cluster:kafka_quota_bytes_per_second:sum > 0)\n          )\n          >\n          " + exact(c.thresholds.HEAVY_SHARE) + "\n        )\n      )\n      unless on (" + label + ", user, client_id)\n      (kafka_quota_fetch_limit_bytes_per_second),\n      \"quota_type\",\n      \"fetch\",\n      \"\",\n      \"\"\n    )\n  )\n  and on (" + label + ")\n  (group by (" + label + ") (quotascope_limits_age_seconds))\n)\nunless on (" + label + ")\n(quotascope_callback_detected > 0)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "A client without a limit has a large part of the traffic.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}With {{ $value | humanize }}B/s, {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} has more than " + short(c.thresholds.HEAVY_SHARE * 100) + "% of the cluster's traffic, and no {{ $labels.quota_type }} limit: if its traffic doubles, all clients slow down.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaHeavyClientWithoutLimit"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-entity?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
          alert("KafkaQuotaSystemUserThrottledByDefault", {
            expr: "(entity:kafka_quota_throttle_time_seconds:max > " + exact(c.thresholds.SYSTEM_THROTTLED) + ")\nand on (" + label + ", quota_type, user, client_id)\n(\n  group by (" + label + ", quota_type, user, client_id) (\n    kafka_quota_rule_info{level=~\"default_user_default_client|default_user|default_client\",user=~\"" + users + "\"}\n    or\n    kafka_quota_rule_info{level=~\"default_user_default_client|default_user|default_client\",client_id=~\"" + users + "\"}\n  )\n)",
            labels: {
              "scope": "entity",
            },
            annotations: {
              "summary": "One of the platform's own programs is throttled by a default quota.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Requests of {{ with $labels.user }}user {{ printf `%q` . }}{{ end }}{{ if and $labels.user $labels.client_id }} with {{ end }}{{ with $labels.client_id }}client-id {{ printf `%q` . }}{{ end }}{{ if not (or $labels.user $labels.client_id) }}the client without a name{{ end }} are delayed by {{ $value | humanizeDuration }} on average. It looks like a part of the platform, and its {{ $labels.quota_type }} limit comes from a default rule.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSystemUserThrottledByDefault"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-entity?var-cluster={{ $labels." + label + " | urlquery }}&var-user={{ $labels.user | urlquery }}&var-client_id={{ $labels.client_id | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-configuration",
        rules: [
          alert("KafkaQuotaRuleChanged", {
            expr: "max by (" + label + ", quota_key) (increase(quotascope_limit_changes_total[10m])) > 0",
            labels: {
              "scope": "configuration",
            },
            annotations: {
              "summary": "A quota was set, changed or removed.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Limits of {{ $labels.quota_key }} were changed within the last 10 minutes. The exporter's log has the old and the new values.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaRuleChanged"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-overview?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-exporter",
        rules: [
          alert("KafkaQuotaExporterAbsent", {
            expr: "(\n  (group by (" + label + ") (last_over_time(quotascope_build_info[1d])))\n  unless on (" + label + ")\n  (group by (" + label + ") (quotascope_build_info))\n)\nor on ()\nabsent(quotascope_build_info)",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "No quotascope exporter of a cluster can be scraped.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}There are no series of quotascope: either it does not run, or Prometheus cannot reach it. Until it does, no other alert on quotas can fire.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaExporterAbsent"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaExporterMissing", {
            expr: "count by (" + label + ") (group by (" + label + ", instance) (quotascope_build_info))\n< on (" + label + ")\ncluster:quotascope_exporters:baseline",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "One of several exporters is missing.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}{{ $value | printf `%.0f` }} exporters can be scraped, and there are usually more: if these fail, too, no alert on quotas can fire.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaExporterMissing"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaRecordingRulesMissing", {
            expr: "(group by (" + label + ") (quotascope_build_info))\nunless on (" + label + ")\n(cluster:kafka_quota_throttled_entities:count)",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "The recording rules do not run.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Prometheus reads an exporter, but has no series of quotascope's recording rules: most alerts on clients, brokers and jobs cannot fire, the critical ones included.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaRecordingRulesMissing"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaSourceDown", {
            expr: "(avg by (" + label + ", instance, source) (avg_over_time(quotascope_source_up[15m])) < " + exact(c.thresholds.SOURCE_READS) + ")\nand on (" + label + ", instance, source)\n(min by (" + label + ", instance, source) (min_over_time(quotascope_source_up[3m])) == 0)",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "quotascope cannot read a broker or controller.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Of the last reads of {{ $labels.source }} by the exporter {{ $labels.instance }}, {{ $value | humanizePercentage }} succeeded: until this changes, it is unknown which clients are throttled there.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSourceDown"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaSourceEmpty", {
            expr: "(max by (" + label + ", instance, source) (quotascope_source_readings) == 0)\nand on (" + label + ", instance, source)\n(max by (" + label + ", instance, source) (quotascope_source_up) > 0)",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "A source answers, but has no values.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The exporter {{ $labels.instance }} reads {{ $labels.source }}, which answers without a single value: the port is wrong, the agent's rules leave everything out, or they admit clients only and there is none.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSourceEmpty"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaReadsSlow", {
            expr: "avg by (" + label + ", instance, source) (avg_over_time(quotascope_source_duration_seconds[15m])) > " + exact(c.thresholds.READ_SECONDS),
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "Reads are so slow that scrapes show older values.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Reads of {{ $labels.source }} by the exporter {{ $labels.instance }} take {{ $value | humanizeDuration }} on average: scrapes do not wait that long and show older values.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaReadsSlow"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaLimitsStale", {
            expr: "(max by (" + label + ", instance) (quotascope_limits_age_seconds) > " + exact(c.thresholds.LIMITS_AGE) + ")\nor\n(\n  (max by (" + label + ", instance) (increase(quotascope_limits_refresh_errors_total[15m])) > 0)\n  unless on (" + label + ", instance)\n  (quotascope_limits_age_seconds)\n)",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "quotascope cannot read the configured quotas.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The exporter {{ $labels.instance }} could not read the configured quotas from Kafka's Admin API for many minutes: limits, rules and utilization are old or missing.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaLimitsStale"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaUtilizationDisagrees", {
            expr: "max by (" + label + ", instance, broker) (quotascope_utilization_disagreements) > 0",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "A broker and quotascope disagree about the utilization of quotas.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}For {{ $value | printf `%.0f` }} clients, broker {{ $labels.broker }} reports another utilization than the exporter {{ $labels.instance }} computes: one of the two has old limits.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaUtilizationDisagrees"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaSnapshotStale", {
            expr: "max by (" + label + ", instance) (quotascope_snapshot_age_seconds) > " + exact(c.thresholds.SNAPSHOT_AGE),
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "quotascope shows old values.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The values that the exporter {{ $labels.instance }} shows are {{ $value | humanizeDuration }} old: its collections do not end.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSnapshotStale"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaSeriesDropped", {
            expr: "max by (" + label + ", instance) (quotascope_series_dropped{reason=\"overflow\"}) > 0",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "quotascope sees more clients than it may show.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The exporter {{ $labels.instance }} shows the clients beyond its cap as one: {{ $value | printf `%.0f` }} series are left out, and no alert names these clients.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSeriesDropped"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaDiscoveryFailing", {
            expr: "max by (" + label + ", instance, discovery) (increase(quotascope_discovery_errors_total[15m])) > " + exact(c.thresholds.DISCOVERY_FAILURES),
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "quotascope cannot discover the brokers.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The exporter {{ $labels.instance }} repeatedly failed to discover brokers ({{ $labels.discovery }}): new ones are not read, and removed ones are still expected.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaDiscoveryFailing"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaSamplesMissed", {
            expr: "(\n  max by (" + label + ", instance) (increase(quotascope_samples_missed_total[15m]))\n  / on (" + label + ", instance)\n  (max by (" + label + ", instance) (increase(quotascope_samples_total[15m])) > 0)\n)\n>\n" + exact(c.thresholds.SAMPLES_LEFT_OUT),
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "Samples between scrapes are left out.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}For every sample that the exporter {{ $labels.instance }} takes between scrapes, it leaves out {{ $value | printf `%.3g` }}, because the one before is still running: peaks are missing.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSamplesMissed"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaPushFailing", {
            expr: "(max by (" + label + ", instance) (increase(quotascope_otlp_exports_total{outcome!=\"success\"}[15m])) > 0)\nunless on (" + label + ", instance)\n(max by (" + label + ", instance) (increase(quotascope_otlp_exports_total{outcome=\"success\"}[15m])) > 0)",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "quotascope cannot push to the OpenTelemetry collector.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}For a quarter of an hour no push of the exporter {{ $labels.instance }} has arrived: alerts and dashboards that use the collector's data see no quotas. Scrapes by Prometheus are not affected.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaPushFailing"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
          alert("KafkaQuotaConfigurationRefused", {
            expr: "min by (" + label + ", instance) (quotascope_config_last_reload_successful) == 0",
            labels: {
              "scope": "exporter",
            },
            annotations: {
              "summary": "quotascope works with an old configuration.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}The exporter {{ $labels.instance }} could not use its configuration when it read it again: the previous one stays in force, and a restart would fail.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaConfigurationRefused"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-exporter?var-cluster={{ $labels." + label + " | urlquery }}",
            },
          }),
        ],
      },
      {
        name: "quotascope-spark",
        rules: [
          alert("KafkaQuotaSparkJobThrottled", {
            expr: "app:spark_kafka_throttled_seconds:rate10m > " + exact(c.thresholds.SPARK_THROTTLED),
            labels: {
              "scope": "job",
            },
            annotations: {
              "summary": "A Spark job is throttled by Kafka's quotas.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Spark job {{ printf `%q` $labels.app }}{{ with $labels.query }}, query {{ printf `%q` . }},{{ end }} has {{ $value | printf `%.3g` }} s of throttle time in every second because of Kafka's quotas (side: {{ $labels.side }}), as if that many of its tasks did nothing but wait.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSparkJobThrottled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-spark?var-cluster={{ $labels." + label + " | urlquery }}&var-app={{ $labels.app | urlquery }}&var-query={{ $labels.query | urlquery }}",
            },
          }),
          alert("KafkaQuotaSparkRetries", {
            expr: "max by (" + label + ", app, cause) (\n  increase(spark_task_retries_total{cause=~\"kafka_quota|kafka_timeout_throttled\"}[30m])\n)\n>\n" + exact(c.thresholds.SPARK_RETRIES),
            labels: {
              "scope": "job",
            },
            annotations: {
              "summary": "Tasks of a Spark job are repeated because of Kafka's quotas.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}About {{ $value | printf `%.0f` }} task attempts of Spark job {{ printf `%q` $labels.app }} were repeated within 30 minutes because of a quota ({{ $labels.cause }}): a task that fails too often ends its job.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSparkRetries"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-spark?var-cluster={{ $labels." + label + " | urlquery }}&var-app={{ $labels.app | urlquery }}",
            },
          }),
          alert("KafkaQuotaSparkEventsLost", {
            expr: "max by (" + label + ", app) (increase(spark_listener_lost_events_total[30m])) > 0",
            labels: {
              "scope": "job",
            },
            annotations: {
              "summary": "quotascope's Spark listener loses events.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}About {{ $value | printf `%.0f` }} events of Spark job {{ printf `%q` $labels.app }} were lost within 30 minutes: its throttle times, retries and failures are too low.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSparkEventsLost"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-spark?var-cluster={{ $labels." + label + " | urlquery }}&var-app={{ $labels.app | urlquery }}",
            },
          }),
          alert("KafkaQuotaSparkQueryStalled", {
            expr: "(\n  (\n    (max by (" + label + ", app, query) (spark_query_progress_age_seconds) > " + exact(c.thresholds.SPARK_STALLED) + ")\n    and on (" + label + ", app, query)\n    (max by (" + label + ", app, query) (app:spark_kafka_throttled_seconds:rate10m) > 0)\n  )\n  or\n  (\n    (max by (" + label + ", app, query) (spark_query_progress_age_seconds) > " + exact(c.thresholds.SPARK_STALLED) + ")\n    and on (" + label + ", app)\n    (max by (" + label + ", app) (app:spark_kafka_throttled_seconds:rate10m{query=\"\"}) > 0)\n  )\n)\nunless on (" + label + ", app, query)\n(\n  max by (" + label + ", app, query) (spark_query_progress_age_seconds)\n  <= on (" + label + ", app, query)\n  max by (" + label + ", app, query) (spark_query_trigger_seconds) * " + exact(c.thresholds.SPARK_STALLED_TRIGGERS) + "\n)",
            labels: {
              "scope": "job",
            },
            annotations: {
              "summary": "A streaming query stands still while Kafka throttles it.",
              "description": "{{ with $labels." + label + " }}[{{ . }}] {{ end }}Spark job {{ printf `%q` $labels.app }}{{ with $labels.query }}, query {{ printf `%q` . }},{{ end }} has reported no progress for {{ $value | humanizeDuration }}, and Kafka's quotas throttled it in the last 10 minutes.",
              [if c.runbook_url != null then "runbook_url"]: runbook("KafkaQuotaSparkQueryStalled"),
              [if c.grafana_url != null then "dashboard_url"]: grafana + "/d/quotascope-spark?var-cluster={{ $labels." + label + " | urlquery }}&var-app={{ $labels.app | urlquery }}&var-query={{ $labels.query | urlquery }}",
            },
          }),
        ],
      },
    ]),
  },

  grafanaDashboards+:: {
    "quotascope-overview.json": {
      "uid": "quotascope-overview",
      "title": "Kafka quotas / Overview",
      "description": "Which clients are throttled now, and by which rule, which are next, and which quotas were changed.",
      "tags": [
        "kafka",
        "quotascope",
      ],
      "editable": false,
      "graphTooltip": 1,
      "links": [
        {
          "asDropdown": true,
          "icon": "external link",
          "includeVars": true,
          "keepTime": true,
          "tags": [
            "quotascope",
          ],
          "targetBlank": false,
          "title": "Quotas",
          "tooltip": "",
          "type": "dashboards",
          "url": "",
        },
      ],
      "annotations": {
        "list": [
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  max by (" + label + ", quota_key) (\n    increase(quotascope_limit_changes_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n  >\n  0,\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"quota_key\"\n)",
            "iconColor": "purple",
            "name": "Limits changed",
            "step": "60s",
            "textFormat": "{{change}}",
            "titleFormat": "Limits changed",
          },
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  label_replace(\n    count by (" + label + ") (\n      (\n        (\n          max by (" + label + ", quota_type, user, client_id) (\n            kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n          )\n        )\n        unless on (" + label + ", user, client_id)\n        (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n      )\n    ),\n    \"what\",\n    \"clients\",\n    \"\",\n    \"\"\n  ),\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"what\"\n)",
            "iconColor": "red",
            "name": "Throttled",
            "step": "30s",
            "textFormat": "{{change}}",
            "titleFormat": "Throttled",
          },
        ],
      },
      "templating": {
        "list": [
          {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "hide": 0,
            "options": [],
            "query": "prometheus",
            "refresh": 1,
          },
          {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(quotascope_build_info, " + label + ")",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
          {
            "name": "owner",
            "label": "Owner",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(entity:kafka_quota_owner:info, owner)",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
        ],
      },
      "panels": [
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 0,
          },
          "id": 1,
          "panels": [],
          "title": "Right now",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Users and client-ids that Kafka throttled within the last minute; for a custom quota callback, those on the broker with most. The brokers' averages linger for 30 to 60 s after the last delay. The alert counts those delayed by more than " + short(c.thresholds.THROTTLED) + " s on average.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": 1,
                  },
                  {
                    "color": "orange",
                    "value": c.thresholds.SPIKE_ENTITIES,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.MANY_ENTITIES,
                  },
                ], value),
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaManyClientsThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaManyClientsThrottled"),
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaThrottleStorm",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaThrottleStorm"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  max by (" + label + ") (\n    label_replace(\n      count by (" + label + ") (\n        group by (" + label + ", user, client_id) (\n          (\n            (\n              max by (" + label + ", quota_type, user, client_id) (\n                kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n              )\n            )\n            unless on (" + label + ", user, client_id)\n            (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n          )\n        )\n      ),\n      \"of\",\n      \"clients\",\n      \"\",\n      \"\"\n    )\n    or\n    label_replace(\n      max by (" + label + ") (\n        count by (" + label + ", instance, broker, quota_type) (\n          kafka_quota_callback_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n        )\n      ),\n      \"of\",\n      \"callback\",\n      \"\",\n      \"\"\n    )\n  )\n)\nor\n0 * max by (" + label + ") (quotascope_source_up{" + label + "=~\"$cluster\"} > 0)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Throttled",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 0,
            "y": 1,
          },
          "id": 2,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Connections that brokers have muted at this moment: the live signal of throttles.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": 1,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "not reported",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "not reported",
            },
            "overrides": [],
          },
          "links": [
            {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "On which brokers",
              "url": "/d/quotascope-brokers?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}",
            },
          ],
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ") (\n  max by (" + label + ", quota_type, broker) (kafka_quota_delay_queue_size{" + label + "=~\"$cluster\"})\n)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Connections waiting",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 4,
            "y": 1,
          },
          "id": 3,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Average delay of the entity that waits longest. Clients give up after their request timeout, often 30 s.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "orange",
                    "value": c.thresholds.THROTTLED,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.CLIENT_TIMEOUT,
                  },
                ], value),
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "s",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaThrottleBeyondClientTimeout",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaThrottleBeyondClientTimeout"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  max by (" + label + ") (\n    (\n      (\n        (\n          max by (" + label + ", quota_type, user, client_id) (\n            kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n          )\n        )\n        unless on (" + label + ", user, client_id)\n        (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n      )\n    )\n    or\n    (kafka_quota_callback_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0)\n  )\n)\nor\n0 * max by (" + label + ") (quotascope_source_up{" + label + "=~\"$cluster\"} > 0)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Longest delay",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 8,
            "y": 1,
          },
          "id": 4,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Users and client-ids near their limit or above it at this moment, throttled or not. Without known limits there is no number.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "orange",
                    "value": 1,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  count by (" + label + ") (\n    group by (" + label + ", user, client_id) (\n      (\n        (max by (" + label + ", quota_type, user, client_id) (kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"}))\n        unless on (" + label + ", user, client_id)\n        (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n      )\n      >\n      " + exact(c.thresholds.NEAR_LIMIT) + "\n    )\n  )\n)\nor\n0 * max by (" + label + ") (\n  (quotascope_limits_age_seconds{" + label + "=~\"$cluster\"})\n  and on (" + label + ")\n  (quotascope_source_up{" + label + "=~\"$cluster\"} > 0)\n)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Above " + short(c.thresholds.NEAR_LIMIT * 100) + "% of the limit",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 12,
            "y": 1,
          },
          "id": 5,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Answers with THROTTLING_QUOTA_EXCEEDED per second, of the request that is refused most: creating or deleting topics, adding partitions. KRaft counts each twice, on the broker and on the controller.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": 0.001,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.REFUSALS,
                  },
                ], value),
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "cps",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": linked([
            {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Controller mutations",
              "url": "/d/quotascope-mutations?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}",
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaRefusalsRising",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaRefusalsRising"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  max by (" + label + ") (\n    label_replace(\n      sum by (" + label + ", request) (\n        max by (" + label + ", broker, request) (\n          rate(kafka_quota_throttling_errors_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n        )\n      ),\n      \"of\",\n      \"requests\",\n      \"\",\n      \"\"\n    )\n    or\n    label_replace(\n      sum by (" + label + ") (\n        max by (" + label + ", broker, user, client_id) (\n          rate(kafka_quota_refused_mutations_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n        )\n      ),\n      \"of\",\n      \"engine\",\n      \"\",\n      \"\"\n    )\n  )\n)\nor\n0 * max by (" + label + ") (quotascope_source_up{" + label + "=~\"$cluster\"} > 0)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Refused (error 89)",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 16,
            "y": 1,
          },
          "id": 6,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Brokers and controllers that the exporter cannot read: clients that are throttled there are missing on this page.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "red",
                    "value": 1,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": linked([
            {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Which, and why",
              "url": "/d/quotascope-exporter?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}",
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSourceDown",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSourceDown"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ") (min by (" + label + ", source) (quotascope_source_up{" + label + "=~\"$cluster\"}) == bool 0)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Sources down",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 20,
            "y": 1,
          },
          "id": 7,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 7,
          },
          "id": 8,
          "panels": [],
          "title": "Who is throttled",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Which clients are throttled, for how long, and by which of Kafka's eight levels of rules (1 is the strongest). If the cause of a throttle of request time is *controller mutation*, the controller imposed it: raise that quota, not the request quota. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Quota",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "produce": {
                            "text": "produce",
                            "index": 0,
                          },
                          "fetch": {
                            "text": "fetch",
                            "index": 1,
                          },
                          "request": {
                            "text": "request time",
                            "index": 2,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 3,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Delay",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 90,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "basic",
                      "type": "color-background",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "transparent",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": 1e-09,
                        },
                        {
                          "color": "orange",
                          "value": c.thresholds.THROTTLED,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.CLIENT_TIMEOUT,
                        },
                      ], value),
                    },
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Used",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.NEAR_LIMIT,
                        },
                        {
                          "color": "semi-dark-red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Rule",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 260,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cause",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "own": {
                            "text": "its own",
                            "index": 0,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 1,
                          },
                          "unknown": {
                            "text": "unknown",
                            "index": 2,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSystemUserThrottledByDefault",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSystemUserThrottledByDefault"),
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaThrottleBeyondClientTimeout",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaThrottleBeyondClientTimeout"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Delay",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, (\n    (\n      max by (" + label + ", quota_type, user, client_id) (\n        kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n      )\n    )\n    unless on (" + label + ", user, client_id)\n    (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    (max by (" + label + ", quota_type, user, client_id) (kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"}))\n    unless on (" + label + ", user, client_id)\n    (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n  )\n)\nand on (" + label + ", quota_type, user, client_id)\n(\n  topk by (" + label + ") (\n    50, (\n      (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n        )\n      )\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((max by (" + label + ", quota_type, user, client_id, rule) (kafka_quota_rule_info{" + label + "=~\"$cluster\"}))\nand on (" + label + ", quota_type, user, client_id)\n(\n  topk by (" + label + ") (\n    50, (\n      (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n        )\n      )\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  max by (" + label + ", quota_type, user, client_id, cause) (\n    kafka_quota_throttle_cause_info{" + label + "=~\"$cluster\"}\n  )\n)\nand on (" + label + ", quota_type, user, client_id)\n(\n  topk by (" + label + ") (\n    50, (\n      (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n        )\n      )\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "D",
              "legendFormat": "",
            },
          ],
          "title": "Throttled now, by which rule",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "quota_type": true,
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  "rule": true,
                  "cause": true,
                  [label]: true,
                },
                "indexByName": {
                  "quota_type": 0,
                  "user": 1,
                  "client_id": 2,
                  "Value #A": 3,
                  "Value": 3,
                  "Value #B": 4,
                  "rule": 5,
                  "cause": 6,
                  [label]: 7,
                },
                "renameByName": {
                  "quota_type": "Quota",
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Delay",
                  "Value": "Delay",
                  "Value #B": "Used",
                  "rule": "Rule",
                  "cause": "Cause",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 24,
            "x": 0,
            "y": 8,
          },
          "id": 9,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 21,
          },
          "id": 10,
          "panels": [],
          "title": "Who is next",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Share of the limit that is used on the busiest broker; each broker applies the limit separately. Above 100 %, Kafka throttles. In 3 hours: by the trend of the last six hours, of which at least four are needed. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Quota",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "produce": {
                            "text": "produce",
                            "index": 0,
                          },
                          "fetch": {
                            "text": "fetch",
                            "index": 1,
                          },
                          "request": {
                            "text": "request time",
                            "index": 2,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 3,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Used",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.NEAR_LIMIT,
                        },
                        {
                          "color": "semi-dark-red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "In 3 hours",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 140,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "orange",
                          "value": c.thresholds.NEAR_LIMIT,
                        },
                        {
                          "color": "red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Rule",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 260,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaNearLimit",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaNearLimit"),
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaManyNearLimit",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaManyNearLimit"),
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaLimitPredicted",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaLimitPredicted"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Used",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, (\n    (\n      (max by (" + label + ", quota_type, user, client_id) (kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"}))\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n  unless on (" + label + ", quota_type, user, client_id)\n  (\n    (\n      (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n        )\n      )\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((max by (" + label + ", quota_type, user, client_id, rule) (kafka_quota_rule_info{" + label + "=~\"$cluster\"}))\nand on (" + label + ", quota_type, user, client_id)\n(\n  topk by (" + label + ") (\n    50, (\n      (\n        (max by (" + label + ", quota_type, user, client_id) (kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"}))\n        unless on (" + label + ", user, client_id)\n        (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n      )\n    )\n    unless on (" + label + ", quota_type, user, client_id)\n    (\n      (\n        (\n          max by (" + label + ", quota_type, user, client_id) (\n            kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n          )\n        )\n        unless on (" + label + ", user, client_id)\n        (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n      )\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  clamp_min(\n    max by (" + label + ", quota_type, user, client_id) (\n      avg by (" + label + ", quota_type, broker, user, client_id) (\n        (predict_linear(kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"}[6h:10m], 3 * 3600))\n        and on (" + label + ", quota_type, broker, user, client_id)\n        (kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"} offset 4h)\n      )\n    ),\n    0\n  )\n)\nand on (" + label + ", quota_type, user, client_id)\n(\n  topk by (" + label + ") (\n    50, (\n      (\n        (max by (" + label + ", quota_type, user, client_id) (kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"}))\n        unless on (" + label + ", user, client_id)\n        (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n      )\n    )\n    unless on (" + label + ", quota_type, user, client_id)\n    (\n      (\n        (\n          max by (" + label + ", quota_type, user, client_id) (\n            kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n          )\n        )\n        unless on (" + label + ", user, client_id)\n        (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n      )\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
          ],
          "title": "Closest to the limit, not throttled yet",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "quota_type": true,
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #C": true,
                  "rule": true,
                  [label]: true,
                },
                "indexByName": {
                  "quota_type": 0,
                  "user": 1,
                  "client_id": 2,
                  "Value #A": 3,
                  "Value": 3,
                  "Value #C": 4,
                  "rule": 5,
                  [label]: 6,
                },
                "renameByName": {
                  "quota_type": "Quota",
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Used",
                  "Value": "Used",
                  "Value #C": "In 3 hours",
                  "rule": "Rule",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 24,
            "x": 0,
            "y": 22,
          },
          "id": 11,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 35,
          },
          "id": 12,
          "panels": [],
          "title": "Who uses most",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Bytes per second produced by this quota entity. Each on its busiest broker. No quota throttles clients without a limit. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Usage",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "Bps",
                  },
                  {
                    "id": "custom.width",
                    "value": 100,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Limit",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "Bps",
                  },
                  {
                    "id": "custom.width",
                    "value": 100,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaHeavyClientWithoutLimit",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaHeavyClientWithoutLimit"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Usage",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, (\n    (max by (" + label + ", user, client_id) (kafka_quota_produce_bytes_per_second{" + label + "=~\"$cluster\"}))\n    unless on (" + label + ", user, client_id)\n    (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((max by (" + label + ", user, client_id) (kafka_quota_produce_limit_bytes_per_second{" + label + "=~\"$cluster\"}))\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, (\n      (max by (" + label + ", user, client_id) (kafka_quota_produce_bytes_per_second{" + label + "=~\"$cluster\"}))\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
          ],
          "title": "Produce: most on one broker",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  [label]: true,
                },
                "indexByName": {
                  "user": 0,
                  "client_id": 1,
                  "Value #A": 2,
                  "Value": 2,
                  "Value #B": 3,
                  [label]: 4,
                },
                "renameByName": {
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Usage",
                  "Value": "Usage",
                  "Value #B": "Limit",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 12,
            "x": 0,
            "y": 36,
          },
          "id": 13,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Bytes per second fetched by this quota entity; can be negative. Each on its busiest broker. No quota throttles clients without a limit. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Usage",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "Bps",
                  },
                  {
                    "id": "custom.width",
                    "value": 100,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Limit",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "Bps",
                  },
                  {
                    "id": "custom.width",
                    "value": 100,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaHeavyClientWithoutLimit",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaHeavyClientWithoutLimit"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Usage",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, (\n    (max by (" + label + ", user, client_id) (kafka_quota_fetch_bytes_per_second{" + label + "=~\"$cluster\"}))\n    unless on (" + label + ", user, client_id)\n    (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((max by (" + label + ", user, client_id) (kafka_quota_fetch_limit_bytes_per_second{" + label + "=~\"$cluster\"}))\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, (\n      (max by (" + label + ", user, client_id) (kafka_quota_fetch_bytes_per_second{" + label + "=~\"$cluster\"}))\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
          ],
          "title": "Fetch: most on one broker",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  [label]: true,
                },
                "indexByName": {
                  "user": 0,
                  "client_id": 1,
                  "Value #A": 2,
                  "Value": 2,
                  "Value #B": 3,
                  [label]: 4,
                },
                "renameByName": {
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Usage",
                  "Value": "Usage",
                  "Value #B": "Limit",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 12,
            "x": 12,
            "y": 36,
          },
          "id": 14,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Request time used by this quota entity, in threads. Each on its busiest broker. No quota throttles clients without a limit. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Usage",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 100,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Limit",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 100,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": [],
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Usage",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, (\n    (max by (" + label + ", user, client_id) (kafka_quota_request_threads{" + label + "=~\"$cluster\"}))\n    unless on (" + label + ", user, client_id)\n    (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((max by (" + label + ", user, client_id) (kafka_quota_request_limit_threads{" + label + "=~\"$cluster\"}))\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, (\n      (max by (" + label + ", user, client_id) (kafka_quota_request_threads{" + label + "=~\"$cluster\"}))\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
          ],
          "title": "Request time: most on one broker",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  [label]: true,
                },
                "indexByName": {
                  "user": 0,
                  "client_id": 1,
                  "Value #A": 2,
                  "Value": 2,
                  "Value #B": 3,
                  [label]: 4,
                },
                "renameByName": {
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Usage",
                  "Value": "Usage",
                  "Value #B": "Limit",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 12,
            "x": 0,
            "y": 49,
          },
          "id": 15,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Share of the limit on the busiest broker, of those that are highest at the end of the chosen time.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": c.thresholds.PREDICTION,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.NEAR_LIMIT,
                  },
                  {
                    "color": "semi-dark-red",
                    "value": 1.0,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "percentunit",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaNearLimit",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaNearLimit"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  (\n    (max by (" + label + ", quota_type, user, client_id) (kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"}))\n    unless on (" + label + ", user, client_id)\n    (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n  )\n)\nand on (" + label + ", quota_type, user, client_id)\n(\n  topk by (" + label + ") (\n    10, (\n      (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"} @ end()\n        )\n      )\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{quota_type}} {{user}} / {{client_id}}",
            },
          ],
          "title": "The 10 of each cluster that use most of their limit",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 13,
            "w": 12,
            "x": 12,
            "y": 49,
          },
          "id": 16,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 62,
          },
          "id": 17,
          "panels": [],
          "title": "Over time",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "How many were throttled, by quota.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 40,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "normal",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaCallbackThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaCallbackThrottled"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  count by (" + label + ", quota_type) (\n    (\n      (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n        )\n      )\n      unless on (" + label + ", user, client_id)\n      (entity:kafka_quota_owner:info{" + label + "=~\"$cluster\",owner!~`${owner:regex}`})\n    )\n  )\n)\nor\n0 * max by (" + label + ", quota_type) (kafka_quota_delay_queue_size{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{quota_type}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", quota_type) (\n  count by (" + label + ", instance, broker, quota_type) (\n    kafka_quota_callback_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} {{quota_type}} of a custom callback",
            },
          ],
          "title": "Throttled users and client-ids",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 0,
            "y": 63,
          },
          "id": 18,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Connections that brokers have muted, by quota.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 40,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "normal",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", quota_type) (\n  max by (" + label + ", quota_type, broker) (kafka_quota_delay_queue_size{" + label + "=~\"$cluster\"})\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{quota_type}}",
            },
          ],
          "title": "Connections waiting",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 8,
            "y": 63,
          },
          "id": 19,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Seconds of delay per second, by request: about the number of connections that do nothing but wait. Every delay counts, however short.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 40,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "normal",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaThrottleSpike",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaThrottleSpike"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", request) (\n  max by (" + label + ", broker, request) (\n    rate(kafka_quota_request_throttled_seconds_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{request}}",
            },
          ],
          "title": "Throttle time",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 16,
            "y": 63,
          },
          "id": 20,
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 71,
          },
          "id": 21,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Every configured rule for users and client-ids, used or not. Each broker applies the limits separately; those of controller mutations are the controller's.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "custom": {
                    "align": "auto",
                    "filterable": true,
                    "cellOptions": {
                      "type": "auto",
                    },
                    "inspect": false,
                  },
                  "unit": "",
                  "color": {
                    "mode": "thresholds",
                  },
                  "mappings": [],
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Rule",
                    },
                    "properties": [
                      {
                        "id": "custom.width",
                        "value": 260,
                      },
                    ],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Produce",
                    },
                    "properties": [
                      {
                        "id": "unit",
                        "value": "Bps",
                      },
                      {
                        "id": "custom.width",
                        "value": 120,
                      },
                    ],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Fetch",
                    },
                    "properties": [
                      {
                        "id": "unit",
                        "value": "Bps",
                      },
                      {
                        "id": "custom.width",
                        "value": 120,
                      },
                    ],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Threads",
                    },
                    "properties": [
                      {
                        "id": "unit",
                        "value": "short",
                      },
                      {
                        "id": "custom.width",
                        "value": 120,
                      },
                    ],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Controller mutations/s",
                    },
                    "properties": [
                      {
                        "id": "unit",
                        "value": "short",
                      },
                      {
                        "id": "custom.width",
                        "value": 190,
                      },
                    ],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Cluster",
                    },
                    "properties": [
                      {
                        "id": "custom.width",
                        "value": 120,
                      },
                    ],
                  },
                ],
              },
              "links": [],
              "options": {
                "showHeader": true,
                "sortBy": [
                  {
                    "desc": true,
                    "displayName": "Produce",
                  },
                ],
                "cellHeight": "sm",
                "enablePagination": false,
                "frameIndex": 0,
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "label_join(max by (" + label + ", rule) (kafka_quota_rule_produce_limit_bytes_per_second{" + label + "=~\"$cluster\"}), \"entity\", \" / \", \"rule\")",
                  "format": "table",
                  "instant": true,
                  "range": false,
                  "refId": "A",
                  "legendFormat": "",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "label_join(max by (" + label + ", rule) (kafka_quota_rule_fetch_limit_bytes_per_second{" + label + "=~\"$cluster\"}), \"entity\", \" / \", \"rule\")",
                  "format": "table",
                  "instant": true,
                  "range": false,
                  "refId": "B",
                  "legendFormat": "",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "label_join(max by (" + label + ", rule) (kafka_quota_rule_request_limit_threads{" + label + "=~\"$cluster\"}), \"entity\", \" / \", \"rule\")",
                  "format": "table",
                  "instant": true,
                  "range": false,
                  "refId": "C",
                  "legendFormat": "",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "label_join(max by (" + label + ", rule) (kafka_quota_rule_controller_mutation_limit_per_second{" + label + "=~\"$cluster\"}), \"entity\", \" / \", \"rule\")",
                  "format": "table",
                  "instant": true,
                  "range": false,
                  "refId": "D",
                  "legendFormat": "",
                },
              ],
              "title": "Rules and their limits",
              "transformations": [
                {
                  "id": "merge",
                  "options": {},
                },
                {
                  "id": "organize",
                  "options": {
                    "excludeByName": {},
                    "includeByName": {
                      "rule": true,
                      "Value #A": true,
                      "Value": true,
                      "Value #B": true,
                      "Value #C": true,
                      "Value #D": true,
                      [label]: true,
                    },
                    "indexByName": {
                      "rule": 0,
                      "Value #A": 1,
                      "Value": 1,
                      "Value #B": 2,
                      "Value #C": 3,
                      "Value #D": 4,
                      [label]: 5,
                    },
                    "renameByName": {
                      "rule": "Rule",
                      "Value #A": "Produce",
                      "Value": "Produce",
                      "Value #B": "Fetch",
                      "Value #C": "Threads",
                      "Value #D": "Controller mutations/s",
                      [label]: "Cluster",
                    },
                  },
                },
              ],
              "type": "table",
              "gridPos": {
                "h": 13,
                "w": 24,
                "x": 0,
                "y": 72,
              },
              "id": 22,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "How many rules there are, by what they limit. A line goes up or down when a rule is added or removed.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "short",
                },
                "overrides": [],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaRuleChanged",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaRuleChanged"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", quota_key) (kafka_quota_rules{" + label + "=~\"$cluster\"})",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{quota_key}}",
                },
              ],
              "title": "Configured rules",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 24,
                "x": 0,
                "y": 85,
              },
              "id": 23,
            },
          ],
          "title": "Configured rules",
          "type": "row",
        },
      ],
      "refresh": "30s",
      "schemaVersion": 42,
      "time": {
        "from": "now-1h",
        "to": "now",
      },
      "timepicker": {
        "hidden": false,
        "refresh_intervals": [
          "10s",
          "30s",
          "1m",
          "5m",
          "15m",
        ],
      },
      "timezone": "browser",
      "version": 0,
    },
    "quotascope-entity.json": {
      "uid": "quotascope-entity",
      "title": "Kafka quotas / User and client-id",
      "description": "One user and client-id on all brokers: usage against limit, delay, and the rules that apply. A quota can apply to the pair or to one of the two: all that apply are shown.",
      "tags": [
        "kafka",
        "quotascope",
      ],
      "editable": false,
      "graphTooltip": 1,
      "links": [
        {
          "asDropdown": true,
          "icon": "external link",
          "includeVars": true,
          "keepTime": true,
          "tags": [
            "quotascope",
          ],
          "targetBlank": false,
          "title": "Quotas",
          "tooltip": "",
          "type": "dashboards",
          "url": "",
        },
      ],
      "annotations": {
        "list": [
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  max by (" + label + ", quota_key) (\n    increase(quotascope_limit_changes_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n  >\n  0,\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"quota_key\"\n)",
            "iconColor": "purple",
            "name": "Limits changed",
            "step": "60s",
            "textFormat": "{{change}}",
            "titleFormat": "Limits changed",
          },
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  max by (" + label + ", quota_type, user, client_id) (\n    kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n    >\n    0\n  ),\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"quota_type\",\n  \"user\",\n  \"client_id\"\n)",
            "iconColor": "red",
            "name": "Throttled",
            "step": "30s",
            "textFormat": "{{change}}",
            "titleFormat": "Throttled",
          },
        ],
      },
      "templating": {
        "list": [
          {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "hide": 0,
            "options": [],
            "query": "prometheus",
            "refresh": 1,
          },
          {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(quotascope_build_info, " + label + ")",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
          {
            "name": "user",
            "label": "User",
            "type": "textbox",
            "hide": 0,
            "options": [],
            "query": "",
            "current": {
              "selected": true,
              "text": "",
              "value": "",
            },
          },
          {
            "name": "client_id",
            "label": "Client-id",
            "type": "textbox",
            "hide": 0,
            "options": [],
            "query": "",
            "current": {
              "selected": true,
              "text": "",
              "value": "",
            },
          },
          {
            "name": "find",
            "label": "Find",
            "type": "textbox",
            "hide": 0,
            "options": [],
            "query": "",
            "current": {
              "selected": true,
              "text": "",
              "value": "",
            },
          },
        ],
      },
      "panels": [
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 0,
          },
          "id": 1,
          "panels": [],
          "title": "Quotas",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Each quota of this user, of this client-id and of both together: the rule that applies, the share of the limit used on the busiest broker, and the average delay there.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Quota",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "produce": {
                            "text": "produce",
                            "index": 0,
                          },
                          "fetch": {
                            "text": "fetch",
                            "index": 1,
                          },
                          "request": {
                            "text": "request time",
                            "index": 2,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 3,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Rule",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 260,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Used",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.NEAR_LIMIT,
                        },
                        {
                          "color": "semi-dark-red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Delay",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 90,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "basic",
                      "type": "color-background",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "transparent",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": 1e-09,
                        },
                        {
                          "color": "orange",
                          "value": c.thresholds.THROTTLED,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.CLIENT_TIMEOUT,
                        },
                      ], value),
                    },
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cause",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "own": {
                            "text": "its own",
                            "index": 0,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 1,
                          },
                          "unknown": {
                            "text": "unknown",
                            "index": 2,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": [],
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Used",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(max by (" + label + ", quota_type, user, client_id, rule) (\n  kafka_quota_rule_info{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(max by (" + label + ", quota_type, user, client_id) (\n  kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(max by (" + label + ", quota_type, user, client_id) (\n  kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n  >\n  0\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  max by (" + label + ", quota_type, user, client_id, cause) (\n    kafka_quota_throttle_cause_info{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n  )\n)\nand on (" + label + ", quota_type, user, client_id)\n(\n  max by (" + label + ", quota_type, user, client_id) (\n    kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n    >\n    0\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "D",
              "legendFormat": "",
            },
          ],
          "title": "Quotas that apply, by which rule",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "quota_type": true,
                  "user": true,
                  "client_id": true,
                  "rule": true,
                  "Value #B": true,
                  "Value #C": true,
                  "cause": true,
                  [label]: true,
                },
                "indexByName": {
                  "quota_type": 0,
                  "user": 1,
                  "client_id": 2,
                  "rule": 3,
                  "Value #B": 4,
                  "Value #C": 5,
                  "cause": 6,
                  [label]: 7,
                },
                "renameByName": {
                  "quota_type": "Quota",
                  "user": "User",
                  "client_id": "Client-id",
                  "rule": "Rule",
                  "Value #B": "Used",
                  "Value #C": "Delay",
                  "cause": "Cause",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 24,
            "x": 0,
            "y": 1,
          },
          "id": 2,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 14,
          },
          "id": 3,
          "panels": [],
          "title": "Share of the limit, and delay",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Usage divided by limit on each broker: above 100 %, Kafka throttles. The peak is the most of the last minute where the exporter samples between scrapes.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": c.thresholds.PREDICTION,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.NEAR_LIMIT,
                  },
                  {
                    "color": "semi-dark-red",
                    "value": 1.0,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "percentunit",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaNearLimit",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaNearLimit"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", quota_type, broker, user, client_id) (\n  kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{quota_type}} {{user}} / {{client_id}} on {{broker}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", quota_type, broker, user, client_id) (\n  kafka_quota_utilization_max_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} {{quota_type}} {{user}} / {{client_id}} on {{broker}}, peak",
            },
          ],
          "title": "Share of the limit, by broker",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 0,
            "y": 15,
          },
          "id": 4,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Average delay of the requests that were throttled in the last 30 to 60 s.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "orange",
                    "value": c.thresholds.THROTTLED,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.CLIENT_TIMEOUT,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaThrottleBeyondClientTimeout",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaThrottleBeyondClientTimeout"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", quota_type, broker, user, client_id) (\n  kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{quota_type}} {{user}} / {{client_id}} on {{broker}}",
            },
          ],
          "title": "Delay, by broker",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 12,
            "y": 15,
          },
          "id": 5,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 23,
          },
          "id": 6,
          "panels": [],
          "title": "Bytes",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Bytes per second produced by this quota entity. The dashed line is the limit, which each broker applies separately.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "Bps",
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byFrameRefID",
                  "options": "B",
                },
                "properties": [
                  {
                    "id": "custom.lineStyle",
                    "value": {
                      "dash": [
                        8,
                        6,
                      ],
                      "fill": "dash",
                    },
                  },
                  {
                    "id": "custom.fillOpacity",
                    "value": 0,
                  },
                  {
                    "id": "custom.stacking",
                    "value": {
                      "group": "limit",
                      "mode": "none",
                    },
                  },
                  {
                    "id": "color",
                    "value": {
                      "fixedColor": "red",
                      "mode": "fixed",
                    },
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaProduceThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaProduceThrottled"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker, user, client_id) (\n  kafka_quota_produce_bytes_per_second{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{user}} / {{client_id}} on {{broker}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_produce_limit_bytes_per_second{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} limit of {{user}} / {{client_id}}",
            },
          ],
          "title": "Produced",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 0,
            "y": 24,
          },
          "id": 7,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Bytes per second fetched by this quota entity; can be negative. The dashed line is the limit, which each broker applies separately.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "Bps",
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byFrameRefID",
                  "options": "B",
                },
                "properties": [
                  {
                    "id": "custom.lineStyle",
                    "value": {
                      "dash": [
                        8,
                        6,
                      ],
                      "fill": "dash",
                    },
                  },
                  {
                    "id": "custom.fillOpacity",
                    "value": 0,
                  },
                  {
                    "id": "custom.stacking",
                    "value": {
                      "group": "limit",
                      "mode": "none",
                    },
                  },
                  {
                    "id": "color",
                    "value": {
                      "fixedColor": "red",
                      "mode": "fixed",
                    },
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaFetchThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaFetchThrottled"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker, user, client_id) (\n  kafka_quota_fetch_bytes_per_second{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{user}} / {{client_id}} on {{broker}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_fetch_limit_bytes_per_second{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} limit of {{user}} / {{client_id}}",
            },
          ],
          "title": "Fetched",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 12,
            "y": 24,
          },
          "id": 8,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 32,
          },
          "id": 9,
          "panels": [],
          "title": "Request time",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Request time used by this quota entity, in threads. The dashed line is the limit, which each broker applies separately.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byFrameRefID",
                  "options": "B",
                },
                "properties": [
                  {
                    "id": "custom.lineStyle",
                    "value": {
                      "dash": [
                        8,
                        6,
                      ],
                      "fill": "dash",
                    },
                  },
                  {
                    "id": "custom.fillOpacity",
                    "value": 0,
                  },
                  {
                    "id": "custom.stacking",
                    "value": {
                      "group": "limit",
                      "mode": "none",
                    },
                  },
                  {
                    "id": "color",
                    "value": {
                      "fixedColor": "red",
                      "mode": "fixed",
                    },
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaRequestThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaRequestThrottled"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker, user, client_id) (\n  kafka_quota_request_threads{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{user}} / {{client_id}} on {{broker}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_request_limit_threads{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} limit of {{user}} / {{client_id}}",
            },
          ],
          "title": "Request time in threads",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 24,
            "x": 0,
            "y": 33,
          },
          "id": 10,
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 41,
          },
          "id": 11,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Controller mutations (partitions created, added or deleted) per second of this quota entity. The dashed line is the limit, which each broker applies separately.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "short",
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byFrameRefID",
                      "options": "B",
                    },
                    "properties": [
                      {
                        "id": "custom.lineStyle",
                        "value": {
                          "dash": [
                            8,
                            6,
                          ],
                          "fill": "dash",
                        },
                      },
                      {
                        "id": "custom.fillOpacity",
                        "value": 0,
                      },
                      {
                        "id": "custom.stacking",
                        "value": {
                          "group": "limit",
                          "mode": "none",
                        },
                      },
                      {
                        "id": "color",
                        "value": {
                          "fixedColor": "red",
                          "mode": "fixed",
                        },
                      },
                    ],
                  },
                ],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaMutationThrottled",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaMutationThrottled"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "table",
                  "placement": "bottom",
                  "calcs": [
                    "lastNotNull",
                    "max",
                  ],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, user, client_id) (\n  kafka_quota_controller_mutations_per_second{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{user}} / {{client_id}} on {{broker}}",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_controller_mutation_limit_per_second{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} limit of {{user}} / {{client_id}}",
                },
              ],
              "title": "Controller mutations per second",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 0,
                "y": 42,
              },
              "id": 12,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Partitions that may still be created, added or deleted at once. Below 0 Kafka refuses; the bucket refills at the rate of the limit.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "short",
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byFrameRefID",
                      "options": "B",
                    },
                    "properties": [
                      {
                        "id": "custom.lineStyle",
                        "value": {
                          "dash": [
                            8,
                            6,
                          ],
                          "fill": "dash",
                        },
                      },
                      {
                        "id": "custom.fillOpacity",
                        "value": 0,
                      },
                      {
                        "id": "custom.stacking",
                        "value": {
                          "group": "limit",
                          "mode": "none",
                        },
                      },
                      {
                        "id": "color",
                        "value": {
                          "fixedColor": "red",
                          "mode": "fixed",
                        },
                      },
                    ],
                  },
                ],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaMutationTokensExhausted",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaMutationTokensExhausted"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "table",
                  "placement": "bottom",
                  "calcs": [
                    "lastNotNull",
                    "max",
                  ],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, user, client_id) (\n  kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{user}} / {{client_id}} on {{broker}}",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_controller_mutation_burst_tokens{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} burst of {{user}} / {{client_id}}",
                },
              ],
              "title": "Tokens left, of the burst",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 12,
                "y": 42,
              },
              "id": 13,
            },
          ],
          "title": "Controller mutations",
          "type": "row",
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 42,
          },
          "id": 14,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Jobs with a Spark listener that have Kafka clients under the quotas above, and how long these wait: 1 means that one task does nothing else. The link leads to the job.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "custom": {
                    "align": "auto",
                    "filterable": true,
                    "cellOptions": {
                      "type": "auto",
                    },
                    "inspect": false,
                  },
                  "unit": "",
                  "color": {
                    "mode": "thresholds",
                  },
                  "mappings": [],
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Job",
                    },
                    "properties": [
                      {
                        "id": "links",
                        "value": [
                          {
                            "targetBlank": false,
                            "title": "This job",
                            "url": "/d/quotascope-spark?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}&var-app=${__data.fields[\"app\"]:percentencode}",
                          },
                        ],
                      },
                    ],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Query",
                    },
                    "properties": [],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Side",
                    },
                    "properties": [
                      {
                        "id": "custom.width",
                        "value": 80,
                      },
                    ],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "User",
                    },
                    "properties": [],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Client-id",
                    },
                    "properties": [],
                  },
                  {
                    "matcher": {
                      "id": "byName",
                      "options": "Waiting",
                    },
                    "properties": [
                      {
                        "id": "unit",
                        "value": "short",
                      },
                      {
                        "id": "custom.width",
                        "value": 100,
                      },
                      {
                        "id": "custom.cellOptions",
                        "value": {
                          "mode": "basic",
                          "type": "color-background",
                        },
                      },
                      {
                        "id": "thresholds",
                        "value": {
                          "mode": "absolute",
                          "steps": std.sort([
                            {
                              "color": "transparent",
                              "value": null,
                            },
                            {
                              "color": "yellow",
                              "value": 1e-09,
                            },
                            {
                              "color": "red",
                              "value": c.thresholds.SPARK_THROTTLED,
                            },
                          ], value),
                        },
                      },
                    ],
                  },
                ],
              },
              "links": [],
              "options": {
                "showHeader": true,
                "sortBy": [
                  {
                    "desc": true,
                    "displayName": "Waiting",
                  },
                ],
                "cellHeight": "sm",
                "enablePagination": false,
                "frameIndex": 0,
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "label_join((\n  max by (" + label + ", app, query, side, user, client_id) (\n    (\n      (\n        (\n          last_over_time(spark_kafka_throttled_seconds_total[10m])\n          unless\n          spark_kafka_throttled_seconds_total offset 10m\n        )\n        unless\n        (\n          last_over_time(spark_kafka_throttled_seconds_total[10m])\n          >=\n          last_over_time(spark_kafka_throttled_seconds_total[1h] offset 10m)\n        )\n      )\n      or\n      increase(spark_kafka_throttled_seconds_total[10m])\n    ) / (10 * 60)\n  )\n)\nand on (app, query, side, user, client_id)\n(\n  (\n    (\n      (\n        (\n          (\n            (\n              (\n                (\n                  0 * max by (" + label + ", app, query, side, user, client_id) (\n                    spark_kafka_throttle_max_seconds{side=\"read\",user!=\"\",client_id!=\"\"}\n                  ) + on (user, client_id) group_left () max by (user, client_id) (\n                    max by (" + label + ", quota_type, user, client_id) (\n                      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user!=\"\",client_id!=\"\",quota_type=~\"fetch|request\"}\n                    )\n                  )\n                )\n                or\n                (\n                  0 * max by (" + label + ", app, query, side, user, client_id) (\n                    spark_kafka_throttle_max_seconds{side=\"write\",user!=\"\",client_id!=\"\"}\n                  ) + on (user, client_id) group_left () max by (user, client_id) (\n                    max by (" + label + ", quota_type, user, client_id) (\n                      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user!=\"\",client_id!=\"\",quota_type=~\"produce|request\"}\n                    )\n                  )\n                )\n              )\n              or\n              (\n                0 * max by (" + label + ", app, query, side, user, client_id) (\n                  spark_kafka_throttle_max_seconds{side=\"admin\",user!=\"\",client_id!=\"\"}\n                ) + on (user, client_id) group_left () max by (user, client_id) (\n                  max by (" + label + ", quota_type, user, client_id) (\n                    kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user!=\"\",client_id!=\"\",quota_type=~\"controller_mutation|request\"}\n                  )\n                )\n              )\n            )\n            or\n            (\n              0 * max by (" + label + ", app, query, side, user, client_id) (\n                spark_kafka_throttle_max_seconds{side=\"read\",user!=\"\"}\n              ) + on (user) group_left () max by (user) (\n                max by (" + label + ", quota_type, user, client_id) (\n                  kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user!=\"\",client_id=\"\",quota_type=~\"fetch|request\"}\n                )\n              )\n            )\n          )\n          or\n          (\n            0 * max by (" + label + ", app, query, side, user, client_id) (\n              spark_kafka_throttle_max_seconds{side=\"write\",user!=\"\"}\n            ) + on (user) group_left () max by (user) (\n              max by (" + label + ", quota_type, user, client_id) (\n                kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user!=\"\",client_id=\"\",quota_type=~\"produce|request\"}\n              )\n            )\n          )\n        )\n        or\n        (\n          0 * max by (" + label + ", app, query, side, user, client_id) (\n            spark_kafka_throttle_max_seconds{side=\"admin\",user!=\"\"}\n          ) + on (user) group_left () max by (user) (\n            max by (" + label + ", quota_type, user, client_id) (\n              kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user!=\"\",client_id=\"\",quota_type=~\"controller_mutation|request\"}\n            )\n          )\n        )\n      )\n      or\n      (\n        0 * max by (" + label + ", app, query, side, user, client_id) (\n          spark_kafka_throttle_max_seconds{side=\"read\",client_id!=\"\"}\n        ) + on (client_id) group_left () max by (client_id) (\n          max by (" + label + ", quota_type, user, client_id) (\n            kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user=\"\",client_id!=\"\",quota_type=~\"fetch|request\"}\n          )\n        )\n      )\n    )\n    or\n    (\n      0 * max by (" + label + ", app, query, side, user, client_id) (\n        spark_kafka_throttle_max_seconds{side=\"write\",client_id!=\"\"}\n      ) + on (client_id) group_left () max by (client_id) (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user=\"\",client_id!=\"\",quota_type=~\"produce|request\"}\n        )\n      )\n    )\n  )\n  or\n  (\n    0 * max by (" + label + ", app, query, side, user, client_id) (\n      spark_kafka_throttle_max_seconds{side=\"admin\",client_id!=\"\"}\n    ) + on (client_id) group_left () max by (client_id) (\n      max by (" + label + ", quota_type, user, client_id) (\n        kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`|${user:regex}`,client_id=~`|${client_id:regex}`,user=\"\",client_id!=\"\",quota_type=~\"controller_mutation|request\"}\n      )\n    )\n  )\n), \"client\", \" / \", \"app\", \"query\", \"side\", \"user\", \"client_id\")",
                  "format": "table",
                  "instant": true,
                  "range": false,
                  "refId": "A",
                  "legendFormat": "",
                },
              ],
              "title": "Spark jobs behind it",
              "transformations": [
                {
                  "id": "merge",
                  "options": {},
                },
                {
                  "id": "organize",
                  "options": {
                    "excludeByName": {},
                    "includeByName": {
                      "app": true,
                      "query": true,
                      "side": true,
                      "user": true,
                      "client_id": true,
                      "Value #A": true,
                      "Value": true,
                    },
                    "indexByName": {
                      "app": 0,
                      "query": 1,
                      "side": 2,
                      "user": 3,
                      "client_id": 4,
                      "Value #A": 5,
                      "Value": 5,
                    },
                    "renameByName": {
                      "app": "Job",
                      "query": "Query",
                      "side": "Side",
                      "user": "User",
                      "client_id": "Client-id",
                      "Value #A": "Waiting",
                      "Value": "Waiting",
                    },
                  },
                },
              ],
              "type": "table",
              "gridPos": {
                "h": 13,
                "w": 24,
                "x": 0,
                "y": 43,
              },
              "id": 15,
            },
          ],
          "title": "Spark jobs",
          "type": "row",
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 43,
          },
          "id": 16,
          "panels": [],
          "title": "Others",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Other entities with the user or the client-id of this page. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Quota",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "produce": {
                            "text": "produce",
                            "index": 0,
                          },
                          "fetch": {
                            "text": "fetch",
                            "index": 1,
                          },
                          "request": {
                            "text": "request time",
                            "index": 2,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 3,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Used",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.NEAR_LIMIT,
                        },
                        {
                          "color": "semi-dark-red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": [],
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Used",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, (\n    max by (" + label + ", quota_type, user, client_id) (\n      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=`${user:raw}`,user!=\"\"}\n    )\n  )\n  or\n  (\n    max by (" + label + ", quota_type, user, client_id) (\n      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",client_id=`${client_id:raw}`,client_id!=\"\"}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
          ],
          "title": "Quotas of the same user or client-id",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "quota_type": true,
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  [label]: true,
                },
                "indexByName": {
                  "quota_type": 0,
                  "user": 1,
                  "client_id": 2,
                  "Value #A": 3,
                  "Value": 3,
                  [label]: 4,
                },
                "renameByName": {
                  "quota_type": "Quota",
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Used",
                  "Value": "Used",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 12,
            "x": 0,
            "y": 44,
          },
          "id": 17,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "All entities with the text of the field Find above in their user or client-id, the highest utilization first. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Quota",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "produce": {
                            "text": "produce",
                            "index": 0,
                          },
                          "fetch": {
                            "text": "fetch",
                            "index": 1,
                          },
                          "request": {
                            "text": "request time",
                            "index": 2,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 3,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Used",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.NEAR_LIMIT,
                        },
                        {
                          "color": "semi-dark-red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": [],
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Used",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, (\n    max by (" + label + ", quota_type, user, client_id) (\n      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${find:regex}.*`}\n    )\n  )\n  or\n  (\n    max by (" + label + ", quota_type, user, client_id) (\n      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",client_id=~`(?is).*${find:regex}.*`}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
          ],
          "title": "Find a user or client-id",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "quota_type": true,
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  [label]: true,
                },
                "indexByName": {
                  "quota_type": 0,
                  "user": 1,
                  "client_id": 2,
                  "Value #A": 3,
                  "Value": 3,
                  [label]: 4,
                },
                "renameByName": {
                  "quota_type": "Quota",
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Used",
                  "Value": "Used",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 12,
            "x": 12,
            "y": 44,
          },
          "id": 18,
        },
      ],
      "refresh": "30s",
      "schemaVersion": 42,
      "time": {
        "from": "now-1h",
        "to": "now",
      },
      "timepicker": {
        "hidden": false,
        "refresh_intervals": [
          "10s",
          "30s",
          "1m",
          "5m",
          "15m",
        ],
      },
      "timezone": "browser",
      "version": 0,
    },
    "quotascope-mutations.json": {
      "uid": "quotascope-mutations",
      "title": "Kafka quotas / Controller mutations",
      "description": "The quota of controller mutations: partitions created, added or deleted. A token bucket allows bursts; when it is empty, Kafka refuses requests (error 89) or delays them until it has refilled at the rate of the limit.",
      "tags": [
        "kafka",
        "quotascope",
      ],
      "editable": false,
      "graphTooltip": 1,
      "links": [
        {
          "asDropdown": true,
          "icon": "external link",
          "includeVars": true,
          "keepTime": true,
          "tags": [
            "quotascope",
          ],
          "targetBlank": false,
          "title": "Quotas",
          "tooltip": "",
          "type": "dashboards",
          "url": "",
        },
      ],
      "annotations": {
        "list": [
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  max by (" + label + ", quota_key) (\n    increase(quotascope_limit_changes_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n  >\n  0,\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"quota_key\"\n)",
            "iconColor": "purple",
            "name": "Limits changed",
            "step": "60s",
            "textFormat": "{{change}}",
            "titleFormat": "Limits changed",
          },
        ],
      },
      "templating": {
        "list": [
          {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "hide": 0,
            "options": [],
            "query": "prometheus",
            "refresh": 1,
          },
          {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(quotascope_build_info, " + label + ")",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
          {
            "name": "user",
            "label": "User",
            "type": "textbox",
            "hide": 0,
            "options": [],
            "query": "",
            "current": {
              "selected": true,
              "text": "",
              "value": "",
            },
          },
          {
            "name": "client_id",
            "label": "Client-id",
            "type": "textbox",
            "hide": 0,
            "options": [],
            "query": "",
            "current": {
              "selected": true,
              "text": "",
              "value": "",
            },
          },
        ],
      },
      "panels": [
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 0,
          },
          "id": 1,
          "panels": [],
          "title": "Right now",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Users and client-ids with controller mutations that were throttled within the last minute.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "orange",
                    "value": 1,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no bucket seen",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no bucket seen",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  count by (" + label + ") (\n    (\n      max by (" + label + ", user, client_id) (\n        kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",quota_type=\"controller_mutation\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n      )\n      >\n      0\n    )\n    or\n    (\n      (\n        max by (" + label + ", user, client_id) (\n          kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",quota_type=\"request\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n        )\n        >\n        0\n      )\n      and on (" + label + ", user, client_id)\n      (\n        max by (" + label + ", user, client_id) (\n          kafka_quota_throttle_cause_info{" + label + "=~\"$cluster\",quota_type=\"request\",cause=\"controller_mutation\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n        )\n      )\n    )\n  )\n)\nor\n0 * max by (" + label + ") (\n  (kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\"})\n  or\n  (kafka_quota_rules{" + label + "=~\"$cluster\",quota_key=\"controller_mutation_rate\"} == 0)\n)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Throttled",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 6,
            "x": 0,
            "y": 1,
          },
          "id": 2,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Users and client-ids with tokens below 0: the next change is refused.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "orange",
                    "value": 1,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no bucket seen",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no bucket seen",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  count by (" + label + ") (\n    min by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n    <\n    0\n  )\n)\nor\n0 * max by (" + label + ") (\n  (kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\"})\n  or\n  (kafka_quota_rules{" + label + "=~\"$cluster\",quota_key=\"controller_mutation_rate\"} == 0)\n)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Buckets in debt",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 6,
            "x": 6,
            "y": 1,
          },
          "id": 3,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "The longest time until a bucket that is in debt holds a token again.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "orange",
                    "value": c.thresholds.THROTTLED,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.MUTATION_THROTTLED,
                  },
                ], value),
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no bucket seen",
                    },
                  },
                },
              ],
              "unit": "s",
              "noValue": "no bucket seen",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaMutationThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaMutationThrottled"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  max by (" + label + ") (\n    (\n      -(min by (" + label + ", user, client_id) (\n        kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n      ) < 0)\n    ) / on (" + label + ", user, client_id) (\n      max by (" + label + ", user, client_id) (\n        kafka_quota_controller_mutation_limit_per_second{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n      )\n      >\n      0\n    )\n  )\n)\nor\n0 * max by (" + label + ") (\n  (kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\"})\n  or\n  (kafka_quota_rules{" + label + "=~\"$cluster\",quota_key=\"controller_mutation_rate\"} == 0)\n)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Longest wait for the next change",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 6,
            "x": 12,
            "y": 1,
          },
          "id": 4,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Answers with THROTTLING_QUOTA_EXCEEDED, of the request that is refused most. KRaft counts each twice, on the broker and on the controller.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": 0.001,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.REFUSALS,
                  },
                ], value),
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "cps",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaRefusalsRising",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaRefusalsRising"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  max by (" + label + ") (\n    label_replace(\n      sum by (" + label + ", request) (\n        max by (" + label + ", broker, request) (\n          rate(kafka_quota_throttling_errors_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n        )\n      ),\n      \"of\",\n      \"requests\",\n      \"\",\n      \"\"\n    )\n    or\n    label_replace(\n      sum by (" + label + ") (\n        max by (" + label + ", broker, user, client_id) (\n          rate(kafka_quota_refused_mutations_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n        )\n      ),\n      \"of\",\n      \"engine\",\n      \"\",\n      \"\"\n    )\n  )\n)\nor\n0 * max by (" + label + ") (quotascope_source_up{" + label + "=~\"$cluster\"} > 0)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Refused per second",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 6,
            "x": 18,
            "y": 1,
          },
          "id": 5,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 7,
          },
          "id": 6,
          "panels": [],
          "title": "Token buckets",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Share of the burst that is used up (1 is empty, more is debt), the rate and its limit, the tokens left, and how long the bucket takes to be full again, or to allow the next change, when nothing is changed meanwhile. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Burst used",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 190,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Usage/s",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 110,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Limit/s",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 90,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Tokens",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 90,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Burst",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 90,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Full again in",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 130,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Next allowed in",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 140,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Rule",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 260,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaMutationTokensExhausted",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaMutationTokensExhausted"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Burst used",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, max by (" + label + ", user, client_id) (\n    kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  max by (" + label + ", user, client_id) (\n    kafka_quota_controller_mutations_per_second{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n  )\n)\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  max by (" + label + ", user, client_id) (\n    kafka_quota_controller_mutation_limit_per_second{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n  )\n)\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  min by (" + label + ", user, client_id) (\n    kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n  )\n)\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "D",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  max by (" + label + ", user, client_id) (\n    kafka_quota_controller_mutation_burst_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n  )\n)\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "E",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    (\n      max by (" + label + ", user, client_id) (\n        kafka_quota_controller_mutation_burst_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n      )\n      - on (" + label + ", user, client_id)\n      min by (" + label + ", user, client_id) (\n        kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n      )\n    )\n  ) / on (" + label + ", user, client_id) (\n    max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_limit_per_second{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n    >\n    0\n  )\n)\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "F",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    -(min by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    ) < 0)\n  ) / on (" + label + ", user, client_id) (\n    max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_limit_per_second{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n    >\n    0\n  )\n)\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "G",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  max by (" + label + ", user, client_id, rule) (\n    kafka_quota_rule_info{" + label + "=~\"$cluster\",quota_type=\"controller_mutation\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n  )\n)\nand on (" + label + ", user, client_id)\n(\n  topk by (" + label + ") (\n    50, max by (" + label + ", user, client_id) (\n      kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n  )\n), \"entity\", \" / \", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "H",
              "legendFormat": "",
            },
          ],
          "title": "Buckets, the emptiest first",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  "Value #C": true,
                  "Value #D": true,
                  "Value #E": true,
                  "Value #F": true,
                  "Value #G": true,
                  "rule": true,
                  [label]: true,
                },
                "indexByName": {
                  "user": 0,
                  "client_id": 1,
                  "Value #A": 2,
                  "Value": 2,
                  "Value #B": 3,
                  "Value #C": 4,
                  "Value #D": 5,
                  "Value #E": 6,
                  "Value #F": 7,
                  "Value #G": 8,
                  "rule": 9,
                  [label]: 10,
                },
                "renameByName": {
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Burst used",
                  "Value": "Burst used",
                  "Value #B": "Usage/s",
                  "Value #C": "Limit/s",
                  "Value #D": "Tokens",
                  "Value #E": "Burst",
                  "Value #F": "Full again in",
                  "Value #G": "Next allowed in",
                  "rule": "Rule",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 24,
            "x": 0,
            "y": 8,
          },
          "id": 7,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 21,
          },
          "id": 8,
          "panels": [],
          "title": "Over time",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Controller mutations (partitions created, added or deleted) per second of this quota entity. Short bursts above the limit are allowed while there are tokens.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byFrameRefID",
                  "options": "B",
                },
                "properties": [
                  {
                    "id": "custom.lineStyle",
                    "value": {
                      "dash": [
                        8,
                        6,
                      ],
                      "fill": "dash",
                    },
                  },
                  {
                    "id": "custom.fillOpacity",
                    "value": 0,
                  },
                  {
                    "id": "custom.stacking",
                    "value": {
                      "group": "limit",
                      "mode": "none",
                    },
                  },
                  {
                    "id": "color",
                    "value": {
                      "fixedColor": "red",
                      "mode": "fixed",
                    },
                  },
                ],
              },
            ],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_controller_mutations_per_second{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{user}} / {{client_id}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_controller_mutation_limit_per_second{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} limit of {{user}} / {{client_id}}",
            },
          ],
          "title": "Changes per second, against the limit",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 0,
            "y": 22,
          },
          "id": 9,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Partitions that may still be changed at once. Below 0 further changes are refused.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byFrameRefID",
                  "options": "B",
                },
                "properties": [
                  {
                    "id": "custom.lineStyle",
                    "value": {
                      "dash": [
                        8,
                        6,
                      ],
                      "fill": "dash",
                    },
                  },
                  {
                    "id": "custom.fillOpacity",
                    "value": 0,
                  },
                  {
                    "id": "custom.stacking",
                    "value": {
                      "group": "limit",
                      "mode": "none",
                    },
                  },
                  {
                    "id": "color",
                    "value": {
                      "fixedColor": "red",
                      "mode": "fixed",
                    },
                  },
                ],
              },
            ],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "min by (" + label + ", user, client_id) (\n  kafka_quota_controller_mutation_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{user}} / {{client_id}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_controller_mutation_burst_tokens{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} burst of {{user}} / {{client_id}}",
            },
          ],
          "title": "Tokens, against the burst",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 8,
            "y": 22,
          },
          "id": 10,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "1 is an empty bucket, more is debt; and the most of the last minute where the exporter samples between scrapes.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": c.thresholds.PREDICTION,
                  },
                  {
                    "color": "red",
                    "value": 1.0,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "percentunit",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaMutationTokensExhausted",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaMutationTokensExhausted"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_controller_mutation_burst_used_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{user}} / {{client_id}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", user, client_id) (\n  kafka_quota_controller_mutation_burst_used_max_ratio{" + label + "=~\"$cluster\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} {{user}} / {{client_id}}, peak",
            },
          ],
          "title": "Share of the burst that is used up",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 16,
            "y": 22,
          },
          "id": 11,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 30,
          },
          "id": 12,
          "panels": [],
          "title": "Refused and delayed",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Answers with THROTTLING_QUOTA_EXCEEDED (error 89), by node and request. Clients that know the error wait and retry by themselves.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 40,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "normal",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "cps",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaRefusalsRising",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaRefusalsRising"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", broker, request) (\n  max by (" + label + ", broker, request) (\n    rate(kafka_quota_throttling_errors_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{request}} on {{broker}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", broker) (\n  max by (" + label + ", broker, user, client_id) (\n    rate(kafka_quota_refused_mutations_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} partitions on {{broker}}, by an embedded engine",
            },
          ],
          "title": "Refused per second, by request",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 0,
            "y": 31,
          },
          "id": 13,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Average throttle time of controller mutations.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "orange",
                    "value": c.thresholds.THROTTLED,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.MUTATION_THROTTLED,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaMutationThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaMutationThrottled"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  max by (" + label + ", user, client_id) (\n    kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",quota_type=\"controller_mutation\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n  )\n  >\n  0\n)\nor\n(\n  (\n    max by (" + label + ", user, client_id) (\n      kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",quota_type=\"request\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n    >\n    0\n  )\n  and on (" + label + ", user, client_id)\n  (\n    max by (" + label + ", user, client_id) (\n      kafka_quota_throttle_cause_info{" + label + "=~\"$cluster\",quota_type=\"request\",cause=\"controller_mutation\",user=~`(?is).*${user:regex}.*`,client_id=~`(?is).*${client_id:regex}.*`}\n    )\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{user}} / {{client_id}}",
            },
          ],
          "title": "Delay",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 12,
            "y": 31,
          },
          "id": 14,
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 39,
          },
          "id": 15,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Average time in the active controller's queue. While it stays low, the quota can be raised; if it grows, controller mutations arrive faster than the controller handles them.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "s",
                },
                "overrides": [],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "(\n  sum by (" + label + ", broker) (\n    max by (" + label + ", broker) (\n      rate(kafka_quota_controller_event_queue_seconds_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n    )\n  )\n) / on (" + label + ", broker) (\n  sum by (" + label + ", broker) (\n    max by (" + label + ", broker) (\n      rate(kafka_quota_controller_events_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n    )\n  )\n  >\n  0\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} controller {{broker}}",
                },
              ],
              "title": "How long the controller's events wait",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 0,
                "y": 40,
              },
              "id": 16,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "What the active controller handles, controller mutations among them.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "cps",
                },
                "overrides": [],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "sum by (" + label + ", broker) (\n  max by (" + label + ", broker) (\n    rate(kafka_quota_controller_events_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} controller {{broker}}",
                },
              ],
              "title": "Events of the controller per second",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 12,
                "y": 40,
              },
              "id": 17,
            },
          ],
          "title": "The controller",
          "type": "row",
        },
      ],
      "refresh": "30s",
      "schemaVersion": 42,
      "time": {
        "from": "now-1h",
        "to": "now",
      },
      "timepicker": {
        "hidden": false,
        "refresh_intervals": [
          "10s",
          "30s",
          "1m",
          "5m",
          "15m",
        ],
      },
      "timezone": "browser",
      "version": 0,
    },
    "quotascope-brokers.json": {
      "uid": "quotascope-brokers",
      "title": "Kafka quotas / Brokers",
      "description": "Where clients wait, how much of the brokers' request threads is used and by what, and the limits on connections, replication and remote storage.",
      "tags": [
        "kafka",
        "quotascope",
      ],
      "editable": false,
      "graphTooltip": 1,
      "links": [
        {
          "asDropdown": true,
          "icon": "external link",
          "includeVars": true,
          "keepTime": true,
          "tags": [
            "quotascope",
          ],
          "targetBlank": false,
          "title": "Quotas",
          "tooltip": "",
          "type": "dashboards",
          "url": "",
        },
      ],
      "annotations": {
        "list": [
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  max by (" + label + ", quota_key) (\n    increase(quotascope_limit_changes_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n  >\n  0,\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"quota_key\"\n)",
            "iconColor": "purple",
            "name": "Limits changed",
            "step": "60s",
            "textFormat": "{{change}}",
            "titleFormat": "Limits changed",
          },
        ],
      },
      "templating": {
        "list": [
          {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "hide": 0,
            "options": [],
            "query": "prometheus",
            "refresh": 1,
          },
          {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(quotascope_build_info, " + label + ")",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
          {
            "name": "broker",
            "label": "Broker",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values({__name__=~\"kafka_quota_throttle_time_seconds|kafka_quota_delay_queue_size\"," + label + "=~\"$cluster\"}, broker)",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
        ],
      },
      "panels": [
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 0,
          },
          "id": 1,
          "panels": [],
          "title": "Clients that wait",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Connections that each broker has muted at that moment, by quota, and the most of the last minute where the exporter samples between scrapes.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": 1,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.DELAY_QUEUE,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaDelayQueueGrowing",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaDelayQueueGrowing"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker, quota_type) (\n  kafka_quota_delay_queue_size{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{quota_type}} on {{broker}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker, quota_type) (\n  kafka_quota_delay_queue_size_max{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} {{quota_type}} on {{broker}}, peak",
            },
          ],
          "title": "Connections waiting, by broker",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 0,
            "y": 1,
          },
          "id": 2,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Seconds of delay per second, by request: about the number of connections that do nothing but wait.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 40,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "normal",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaThrottleSpike",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaThrottleSpike"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", broker, request) (\n  max by (" + label + ", broker, request) (\n    rate(kafka_quota_request_throttled_seconds_total{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}[$__rate_interval])\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{request}} on {{broker}}",
            },
          ],
          "title": "Throttle time, by broker",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 12,
            "y": 1,
          },
          "id": 3,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 9,
          },
          "id": 4,
          "panels": [],
          "title": "Load",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Share of time in which the request handlers of the busiest pool had no request. Near 0, every request waits for a handler.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "red",
                    "value": null,
                  },
                  {
                    "color": "green",
                    "value": c.thresholds.HANDLERS_IDLE,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "percentunit",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaBrokerSaturated",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaBrokerSaturated"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "min by (" + label + ", broker) (\n  rate(kafka_quota_request_handler_pool_idle_time_seconds_total{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}[$__rate_interval])\n)\nor\nmin by (" + label + ", broker) (\n  rate(kafka_quota_request_handler_idle_time_seconds_total{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}[$__rate_interval])\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} broker {{broker}}",
            },
          ],
          "title": "Idle request handlers",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 0,
            "y": 10,
          },
          "id": 5,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Share of time in which network threads, and the thread of the controller's events, had nothing to do.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "percentunit",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker) (\n  kafka_quota_network_processor_idle_ratio{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} on {{broker}}, network",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker) (\n  kafka_quota_controller_event_idle_ratio{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} on {{broker}}, controller",
            },
          ],
          "title": "Idle network and controller threads",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 8,
            "y": 10,
          },
          "id": 6,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "The 99th percentile of the last requests, mostly of 5 minutes, by request.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker, request) (\n  kafka_quota_request_queue_seconds{" + label + "=~\"$cluster\",broker=~`${broker:regex}`,percentile=\"99\"}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{request}} on {{broker}}",
            },
          ],
          "title": "Wait for a request handler",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 16,
            "y": 10,
          },
          "id": 7,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 18,
          },
          "id": 8,
          "panels": [],
          "title": "Request capacity",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Share of the I/O and network threads' time that clients under a quota and work that no quota counts take. Near 1, every request waits in the queue.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": c.thresholds.EXEMPT_CAPACITY,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.REQUEST_CAPACITY,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "percentunit",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaRequestTimeNearCapacity",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaRequestTimeNearCapacity"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  sum by (" + label + ", broker) (\n    max by (" + label + ", broker, user, client_id) (\n      kafka_quota_request_threads{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n    )\n  )\n  + on (" + label + ", broker)\n  max by (" + label + ", broker) (\n    kafka_quota_exempt_request_threads{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n  )\n) / on (" + label + ", broker) (\n  max by (" + label + ", broker) (\n    kafka_quota_request_capacity_threads{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n  )\n  >\n  0\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} broker {{broker}}",
            },
          ],
          "title": "Share of the request threads that is busy",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 0,
            "y": 19,
          },
          "id": 9,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Threads that clients and the broker itself use; the dashed line is the number of threads.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byFrameRefID",
                  "options": "C",
                },
                "properties": [
                  {
                    "id": "custom.lineStyle",
                    "value": {
                      "dash": [
                        8,
                        6,
                      ],
                      "fill": "dash",
                    },
                  },
                  {
                    "id": "custom.fillOpacity",
                    "value": 0,
                  },
                  {
                    "id": "custom.stacking",
                    "value": {
                      "group": "limit",
                      "mode": "none",
                    },
                  },
                  {
                    "id": "color",
                    "value": {
                      "fixedColor": "red",
                      "mode": "fixed",
                    },
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaExemptRequestTimeHigh",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaExemptRequestTimeHigh"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", broker) (\n  max by (" + label + ", broker, user, client_id) (\n    kafka_quota_request_threads{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} clients on {{broker}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker) (\n  kafka_quota_exempt_request_threads{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} counted by no quota on {{broker}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker) (\n  kafka_quota_request_capacity_threads{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "C",
              "legendFormat": "{{" + label + "}} threads of {{broker}}",
            },
          ],
          "title": "Request time, in threads",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 12,
            "y": 19,
          },
          "id": 10,
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 27,
          },
          "id": 11,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "New connections per second of the broker; without those of the inter-broker listener if there are several listeners. Against max.connection.creation.rate.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "cps",
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byFrameRefID",
                      "options": "B",
                    },
                    "properties": [
                      {
                        "id": "custom.lineStyle",
                        "value": {
                          "dash": [
                            8,
                            6,
                          ],
                          "fill": "dash",
                        },
                      },
                      {
                        "id": "custom.fillOpacity",
                        "value": 0,
                      },
                      {
                        "id": "custom.stacking",
                        "value": {
                          "group": "limit",
                          "mode": "none",
                        },
                      },
                      {
                        "id": "color",
                        "value": {
                          "fixedColor": "red",
                          "mode": "fixed",
                        },
                      },
                    ],
                  },
                ],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker) (\n  kafka_quota_broker_connections_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} on {{broker}}",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker) (\n  kafka_quota_broker_connection_limit_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} limit on {{broker}}",
                },
              ],
              "title": "New connections per second, by broker",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 0,
                "y": 28,
              },
              "id": 12,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "New connections per second of this listener. Against the limit of the listener.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "cps",
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byFrameRefID",
                      "options": "B",
                    },
                    "properties": [
                      {
                        "id": "custom.lineStyle",
                        "value": {
                          "dash": [
                            8,
                            6,
                          ],
                          "fill": "dash",
                        },
                      },
                      {
                        "id": "custom.fillOpacity",
                        "value": 0,
                      },
                      {
                        "id": "custom.stacking",
                        "value": {
                          "group": "limit",
                          "mode": "none",
                        },
                      },
                      {
                        "id": "color",
                        "value": {
                          "fixedColor": "red",
                          "mode": "fixed",
                        },
                      },
                    ],
                  },
                ],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, listener) (\n  kafka_quota_listener_connections_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{listener}} on {{broker}}",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, listener) (\n  kafka_quota_listener_connection_limit_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} limit of {{listener}} on {{broker}}",
                },
              ],
              "title": "New connections per second, by listener",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 8,
                "y": 28,
              },
              "id": 13,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Average delay before this listener accepts the next connection, 0 without delays.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": std.sort([
                      {
                        "color": "green",
                        "value": null,
                      },
                      {
                        "color": "red",
                        "value": c.thresholds.CONNECTION_THROTTLE,
                      },
                    ], value),
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "dashed",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "s",
                },
                "overrides": [],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaConnectionsThrottled",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaConnectionsThrottled"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, listener) (\n  kafka_quota_listener_connection_throttle_seconds{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{listener}} on {{broker}}",
                },
              ],
              "title": "Wait for the next connection",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 16,
                "y": 28,
              },
              "id": 14,
            },
          ],
          "title": "New connections",
          "type": "row",
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 28,
          },
          "id": 15,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "New connections per second of this IP address; absent without a limit.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "cps",
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byFrameRefID",
                      "options": "B",
                    },
                    "properties": [
                      {
                        "id": "custom.lineStyle",
                        "value": {
                          "dash": [
                            8,
                            6,
                          ],
                          "fill": "dash",
                        },
                      },
                      {
                        "id": "custom.fillOpacity",
                        "value": 0,
                      },
                      {
                        "id": "custom.stacking",
                        "value": {
                          "group": "limit",
                          "mode": "none",
                        },
                      },
                      {
                        "id": "color",
                        "value": {
                          "fixedColor": "red",
                          "mode": "fixed",
                        },
                      },
                    ],
                  },
                ],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, ip) (\n  kafka_quota_ip_connections_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{ip}} on {{broker}}",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, ip) (\n  kafka_quota_ip_connection_limit_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} limit of {{ip}} on {{broker}}",
                },
              ],
              "title": "New connections per second, by address",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 0,
                "y": 29,
              },
              "id": 16,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Average delay of connections that the broker refused for the limit of their IP address, 0 without refusals.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "s",
                },
                "overrides": [],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaConnectionsOfAddressRefused",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaConnectionsOfAddressRefused"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, listener) (\n  kafka_quota_ip_connection_throttle_seconds{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{listener}} on {{broker}}",
                },
              ],
              "title": "Delay of refused connections",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 12,
                "y": 29,
              },
              "id": 17,
            },
          ],
          "title": "Connections of addresses",
          "type": "row",
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 29,
          },
          "id": 18,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Bytes per second of throttled replicas sent (leader) or fetched (follower), or of all replicas moved between log directories (alter_log_dirs); absent until the first. A limit that stays after a reassignment slows down recovery.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "Bps",
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byFrameRefID",
                      "options": "B",
                    },
                    "properties": [
                      {
                        "id": "custom.lineStyle",
                        "value": {
                          "dash": [
                            8,
                            6,
                          ],
                          "fill": "dash",
                        },
                      },
                      {
                        "id": "custom.fillOpacity",
                        "value": 0,
                      },
                      {
                        "id": "custom.stacking",
                        "value": {
                          "group": "limit",
                          "mode": "none",
                        },
                      },
                      {
                        "id": "color",
                        "value": {
                          "fixedColor": "red",
                          "mode": "fixed",
                        },
                      },
                    ],
                  },
                ],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaReplicationThrottleLeftOn",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaReplicationThrottleLeftOn"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, direction) (\n  kafka_quota_replication_bytes_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{direction}} on {{broker}}",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, direction) (\n  kafka_quota_replication_limit_bytes_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} limit of {{direction}} on {{broker}}",
                },
              ],
              "title": "Throttled replication",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 24,
                "x": 0,
                "y": 30,
              },
              "id": 19,
            },
          ],
          "title": "Replication",
          "type": "row",
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 30,
          },
          "id": 20,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Bytes per second copied to or fetched from the remote storage.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "Bps",
                },
                "overrides": [
                  {
                    "matcher": {
                      "id": "byFrameRefID",
                      "options": "B",
                    },
                    "properties": [
                      {
                        "id": "custom.lineStyle",
                        "value": {
                          "dash": [
                            8,
                            6,
                          ],
                          "fill": "dash",
                        },
                      },
                      {
                        "id": "custom.fillOpacity",
                        "value": 0,
                      },
                      {
                        "id": "custom.stacking",
                        "value": {
                          "group": "limit",
                          "mode": "none",
                        },
                      },
                      {
                        "id": "color",
                        "value": {
                          "fixedColor": "red",
                          "mode": "fixed",
                        },
                      },
                    ],
                  },
                ],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, direction) (\n  kafka_quota_remote_storage_bytes_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{direction}} on {{broker}}",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, direction) (\n  kafka_quota_remote_storage_limit_bytes_per_second{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} limit of {{direction}} on {{broker}}",
                },
              ],
              "title": "Remote storage",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 0,
                "y": 31,
              },
              "id": 21,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Average throttle time of transfers to (copy) or from (fetch) the remote storage, 0 without throttles.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "s",
                },
                "overrides": [],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, direction) (\n  kafka_quota_remote_storage_throttle_time_seconds{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{direction}} on {{broker}}",
                },
              ],
              "title": "Delay of remote storage",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 12,
                "y": 31,
              },
              "id": 22,
            },
          ],
          "title": "Remote storage",
          "type": "row",
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 31,
          },
          "id": 23,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Entities of earlier rules or of an earlier controller, which are left out.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "short",
                },
                "overrides": [],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker, quota_type) (\n  kafka_quota_stale_entities{" + label + "=~\"$cluster\",broker=~`${broker:regex}`}\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{quota_type}} on {{broker}}",
                },
              ],
              "title": "Left over from earlier rules",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 24,
                "x": 0,
                "y": 32,
              },
              "id": 24,
            },
          ],
          "title": "Leftovers",
          "type": "row",
        },
      ],
      "refresh": "30s",
      "schemaVersion": 42,
      "time": {
        "from": "now-1h",
        "to": "now",
      },
      "timepicker": {
        "hidden": false,
        "refresh_intervals": [
          "10s",
          "30s",
          "1m",
          "5m",
          "15m",
        ],
      },
      "timezone": "browser",
      "version": 0,
    },
    "quotascope-shadow.json": {
      "uid": "quotascope-shadow",
      "title": "Kafka quotas / Shadow",
      "description": "What brokers would do under quotas that are not set. No broker enforces them.",
      "tags": [
        "kafka",
        "quotascope",
      ],
      "editable": false,
      "graphTooltip": 1,
      "links": [
        {
          "asDropdown": true,
          "icon": "external link",
          "includeVars": true,
          "keepTime": true,
          "tags": [
            "quotascope",
          ],
          "targetBlank": false,
          "title": "Quotas",
          "tooltip": "",
          "type": "dashboards",
          "url": "",
        },
      ],
      "annotations": {
        "list": [
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  max by (" + label + ", quota_key) (\n    increase(quotascope_limit_changes_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n  >\n  0,\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"quota_key\"\n)",
            "iconColor": "purple",
            "name": "Limits changed",
            "step": "60s",
            "textFormat": "{{change}}",
            "titleFormat": "Limits changed",
          },
        ],
      },
      "templating": {
        "list": [
          {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "hide": 0,
            "options": [],
            "query": "prometheus",
            "refresh": 1,
          },
          {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(quotascope_build_info, " + label + ")",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
          {
            "name": "shadow",
            "label": "Shadow",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values({__name__=~\"kafka_quota_shadow_unevaluated_entities|kafka_quota_shadow_throttled_entities\"}, shadow)",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
        ],
      },
      "panels": [
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 0,
          },
          "id": 1,
          "panels": [],
          "title": "Safe to set",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Clients that each shadow would throttle on the broker with most of them, now and at most in 14 days; those of which that is unknown; and for how long no client was throttled and none unknown, as far back as 14 days.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Shadow",
                },
                "properties": [],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Quota",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "produce": {
                            "text": "produce",
                            "index": 0,
                          },
                          "fetch": {
                            "text": "fetch",
                            "index": 1,
                          },
                          "request": {
                            "text": "request time",
                            "index": 2,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 3,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Would be throttled",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 185,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Most in 14 days",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 150,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Unknown",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 110,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Unknown in 14 days",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 170,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Quiet for",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 130,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaShadowThrottlesMany",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaShadowThrottlesMany"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Would be throttled",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(max by (" + label + ", shadow, quota_type) (\n  kafka_quota_shadow_throttled_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n), \"entity\", \" / \", \"shadow\", \"quota_type\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(max_over_time(\n  (\n    max by (" + label + ", shadow, quota_type) (\n      kafka_quota_shadow_throttled_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n    )\n  )[14d:5m]\n), \"entity\", \" / \", \"shadow\", \"quota_type\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  sum by (" + label + ", shadow, quota_type) (\n    max by (" + label + ", shadow, quota_type, broker, reason) (\n      kafka_quota_shadow_unevaluated_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n    )\n  )\n)\nor\n(\n  0 * max by (" + label + ", shadow, quota_type) (\n    kafka_quota_shadow_throttled_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n  )\n), \"entity\", \" / \", \"shadow\", \"quota_type\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(max_over_time(\n  (\n    (\n      sum by (" + label + ", shadow, quota_type) (\n        max by (" + label + ", shadow, quota_type, broker, reason) (\n          kafka_quota_shadow_unevaluated_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n        )\n      )\n    )\n    or\n    (\n      0 * max by (" + label + ", shadow, quota_type) (\n        kafka_quota_shadow_throttled_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n      )\n    )\n  )[14d:5m]\n), \"entity\", \" / \", \"shadow\", \"quota_type\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "D",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  time() - max_over_time(\n    timestamp(\n      (\n        max by (" + label + ", shadow, quota_type) (\n          kafka_quota_shadow_throttled_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n        )\n        >\n        0\n      )\n      or\n      (\n        (\n          sum by (" + label + ", shadow, quota_type) (\n            max by (" + label + ", shadow, quota_type, broker, reason) (\n              kafka_quota_shadow_unevaluated_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n            )\n          )\n        )\n        or\n        (\n          0 * max by (" + label + ", shadow, quota_type) (\n            kafka_quota_shadow_throttled_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n          )\n        )\n        >\n        0\n      )\n    )[14d:5m]\n  )\n)\nor\n(\n  time() - min_over_time(\n    timestamp(\n      max by (" + label + ", shadow, quota_type) (\n        kafka_quota_shadow_throttled_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n      )\n    )[14d:5m]\n  )\n), \"entity\", \" / \", \"shadow\", \"quota_type\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "E",
              "legendFormat": "",
            },
          ],
          "title": "Shadows",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "shadow": true,
                  "quota_type": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  "Value #C": true,
                  "Value #D": true,
                  "Value #E": true,
                  [label]: true,
                },
                "indexByName": {
                  "shadow": 0,
                  "quota_type": 1,
                  "Value #A": 2,
                  "Value": 2,
                  "Value #B": 3,
                  "Value #C": 4,
                  "Value #D": 5,
                  "Value #E": 6,
                  [label]: 7,
                },
                "renameByName": {
                  "shadow": "Shadow",
                  "quota_type": "Quota",
                  "Value #A": "Would be throttled",
                  "Value": "Would be throttled",
                  "Value #B": "Most in 14 days",
                  "Value #C": "Unknown",
                  "Value #D": "Unknown in 14 days",
                  "Value #E": "Quiet for",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 24,
            "x": 0,
            "y": 1,
          },
          "id": 2,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 14,
          },
          "id": 3,
          "panels": [],
          "title": "Who",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Usage / limit of the shadow, and the delay of a request now if it were set, on the worst broker; beside them what is enforced on the same user and client-id, if anything is. At most 50 of each cluster.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Shadow",
                },
                "properties": [],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Quota",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "produce": {
                            "text": "produce",
                            "index": 0,
                          },
                          "fetch": {
                            "text": "fetch",
                            "index": 1,
                          },
                          "request": {
                            "text": "request time",
                            "index": 2,
                          },
                          "controller_mutation": {
                            "text": "controller mutation",
                            "index": 3,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "This user and client-id",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields[\"" + label + "\"]:percentencode}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Used in the shadow",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 190,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.NEAR_LIMIT,
                        },
                        {
                          "color": "semi-dark-red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Shadow delay",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 135,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "basic",
                      "type": "color-background",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "transparent",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": 1e-09,
                        },
                        {
                          "color": "orange",
                          "value": c.thresholds.THROTTLED,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.CLIENT_TIMEOUT,
                        },
                      ], value),
                    },
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Used now",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 110,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Delay",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 90,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "basic",
                      "type": "color-background",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "transparent",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": 1e-09,
                        },
                        {
                          "color": "orange",
                          "value": c.thresholds.THROTTLED,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.CLIENT_TIMEOUT,
                        },
                      ], value),
                    },
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaShadowThrottlesClient",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaShadowThrottlesClient"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Used in the shadow",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(topk by (" + label + ") (\n  50, max by (" + label + ", shadow, quota_type, user, client_id) (\n    kafka_quota_shadow_utilization_ratio{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n  )\n), \"entity\", \" / \", \"shadow\", \"quota_type\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  max by (" + label + ", shadow, quota_type, user, client_id) (\n    kafka_quota_shadow_throttle_time_seconds{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n  )\n)\nand on (" + label + ", shadow, quota_type, user, client_id)\n(\n  topk by (" + label + ") (\n    50, max by (" + label + ", shadow, quota_type, user, client_id) (\n      kafka_quota_shadow_utilization_ratio{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n    )\n  )\n), \"entity\", \" / \", \"shadow\", \"quota_type\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((0 * (\n  topk by (" + label + ") (\n    50, max by (" + label + ", shadow, quota_type, user, client_id) (\n      kafka_quota_shadow_utilization_ratio{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n    )\n  )\n)) + on (" + label + ", quota_type, user, client_id) group_left () (max by (" + label + ", quota_type, user, client_id) (kafka_quota_utilization_ratio{" + label + "=~\"$cluster\"})), \"entity\", \" / \", \"shadow\", \"quota_type\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((0 * (\n  topk by (" + label + ") (\n    50, max by (" + label + ", shadow, quota_type, user, client_id) (\n      kafka_quota_shadow_utilization_ratio{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n    )\n  )\n)) + on (" + label + ", quota_type, user, client_id) group_left () (\n  max by (" + label + ", quota_type, user, client_id) (\n    kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n  )\n), \"entity\", \" / \", \"shadow\", \"quota_type\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "D",
              "legendFormat": "",
            },
          ],
          "title": "Clients nearest to the limits of a shadow",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "shadow": true,
                  "quota_type": true,
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  "Value #C": true,
                  "Value #D": true,
                  [label]: true,
                },
                "indexByName": {
                  "shadow": 0,
                  "quota_type": 1,
                  "user": 2,
                  "client_id": 3,
                  "Value #A": 4,
                  "Value": 4,
                  "Value #B": 5,
                  "Value #C": 6,
                  "Value #D": 7,
                  [label]: 8,
                },
                "renameByName": {
                  "shadow": "Shadow",
                  "quota_type": "Quota",
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Used in the shadow",
                  "Value": "Used in the shadow",
                  "Value #B": "Shadow delay",
                  "Value #C": "Used now",
                  "Value #D": "Delay",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 24,
            "x": 0,
            "y": 15,
          },
          "id": 4,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 28,
          },
          "id": 5,
          "panels": [],
          "title": "Over time",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Solid: what each shadow would throttle, on the broker with most. Dashed: clients that quotas in force throttle.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byFrameRefID",
                  "options": "B",
                },
                "properties": [
                  {
                    "id": "custom.lineStyle",
                    "value": {
                      "dash": [
                        8,
                        6,
                      ],
                      "fill": "dash",
                    },
                  },
                  {
                    "id": "custom.fillOpacity",
                    "value": 0,
                  },
                  {
                    "id": "custom.stacking",
                    "value": {
                      "group": "limit",
                      "mode": "none",
                    },
                  },
                  {
                    "id": "color",
                    "value": {
                      "fixedColor": "red",
                      "mode": "fixed",
                    },
                  },
                ],
              },
            ],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", shadow, quota_type) (\n  kafka_quota_shadow_throttled_entities{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{shadow}}, {{quota_type}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "count by (" + label + ", quota_type) (\n  max by (" + label + ", quota_type, user, client_id) (\n    kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n  )\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} in force, {{quota_type}}",
            },
          ],
          "title": "Clients throttled, if it were set and now",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 0,
            "y": 29,
          },
          "id": 6,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Solid: the delay of a request if a shadow were set. Dashed: the average delay by quotas in force.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byFrameRefID",
                  "options": "B",
                },
                "properties": [
                  {
                    "id": "custom.lineStyle",
                    "value": {
                      "dash": [
                        8,
                        6,
                      ],
                      "fill": "dash",
                    },
                  },
                  {
                    "id": "custom.fillOpacity",
                    "value": 0,
                  },
                  {
                    "id": "custom.stacking",
                    "value": {
                      "group": "limit",
                      "mode": "none",
                    },
                  },
                  {
                    "id": "color",
                    "value": {
                      "fixedColor": "red",
                      "mode": "fixed",
                    },
                  },
                ],
              },
            ],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", shadow, quota_type, user, client_id) (\n  kafka_quota_shadow_throttle_time_seconds{" + label + "=~\"$cluster\",shadow=~`${shadow:regex}`}\n)\n>\n0",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{shadow}}: {{quota_type}} of {{user}} / {{client_id}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", quota_type, user, client_id) (\n  kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\"} > 0\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} in force: {{quota_type}} of {{user}} / {{client_id}}",
            },
          ],
          "title": "Delay, if it were set and now",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 12,
            "y": 29,
          },
          "id": 7,
        },
      ],
      "refresh": "30s",
      "schemaVersion": 42,
      "time": {
        "from": "now-1h",
        "to": "now",
      },
      "timepicker": {
        "hidden": false,
        "refresh_intervals": [
          "10s",
          "30s",
          "1m",
          "5m",
          "15m",
        ],
      },
      "timezone": "browser",
      "version": 0,
    },
    "quotascope-spark.json": {
      "uid": "quotascope-spark",
      "title": "Kafka quotas / Spark jobs",
      "description": "How long Spark jobs wait for Kafka, what that costs them, and what the brokers measure for the same user and client-id.",
      "tags": [
        "kafka",
        "quotascope",
      ],
      "editable": false,
      "graphTooltip": 1,
      "links": [
        {
          "asDropdown": true,
          "icon": "external link",
          "includeVars": true,
          "keepTime": true,
          "tags": [
            "quotascope",
          ],
          "targetBlank": false,
          "title": "Quotas",
          "tooltip": "",
          "type": "dashboards",
          "url": "",
        },
      ],
      "annotations": {
        "list": [
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  max by (" + label + ", quota_key) (\n    increase(quotascope_limit_changes_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n  >\n  0,\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"quota_key\"\n)",
            "iconColor": "purple",
            "name": "Limits changed",
            "step": "60s",
            "textFormat": "{{change}}",
            "titleFormat": "Limits changed",
          },
        ],
      },
      "templating": {
        "list": [
          {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "hide": 0,
            "options": [],
            "query": "prometheus",
            "refresh": 1,
          },
          {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(quotascope_build_info, " + label + ")",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
          {
            "name": "app",
            "label": "Job",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(spark_listener_events_total, app)",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
          {
            "name": "query",
            "label": "Query",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(spark_query_progress_age_seconds{app=~`${app:regex}`}, query)",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
        ],
      },
      "panels": [
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 0,
          },
          "id": 1,
          "panels": [],
          "title": "Jobs that wait",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "One row for each Kafka client of a job, the longest throttle time first. Waiting: seconds of throttle time per second, over ten minutes; 1 means that one task does nothing but wait. Longest: of the last minute or two. Delay and Used are what the exporter reads from brokers for the same client: by user, client-id or both, depending on the rule (Seen as); under the quota of its side, or under request time. Not seen: no rule applies to it, the job does not report its user, its cluster is not chosen above, or no exporter reads its brokers. The links lead to the brokers' view.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Job",
                },
                "properties": [],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Query",
                },
                "properties": [],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Side",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 80,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "User",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "The brokers' view",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Client-id",
                },
                "properties": [
                  {
                    "id": "links",
                    "value": [
                      {
                        "targetBlank": false,
                        "title": "The brokers' view",
                        "url": "/d/quotascope-entity?${datasource:queryparam}&${__url_time_range}&${cluster:queryparam}&var-user=${__data.fields[\"user\"]:percentencode}&var-client_id=${__data.fields[\"client_id\"]:percentencode}",
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Waiting",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 100,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "basic",
                      "type": "color-background",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "transparent",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": 1e-09,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.SPARK_THROTTLED,
                        },
                      ], value),
                    },
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Longest",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 90,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Seen as",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 140,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "3": {
                            "text": "user + client-id",
                            "index": 0,
                          },
                          "2": {
                            "text": "user",
                            "index": 1,
                          },
                          "1": {
                            "text": "client-id",
                            "index": 2,
                          },
                          "0": {
                            "text": "not seen",
                            "index": 3,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Delay",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 90,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "basic",
                      "type": "color-background",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "transparent",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": 1e-09,
                        },
                        {
                          "color": "orange",
                          "value": c.thresholds.THROTTLED,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.CLIENT_TIMEOUT,
                        },
                      ], value),
                    },
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Used",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "percentunit",
                  },
                  {
                    "id": "custom.width",
                    "value": 145,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "lcd",
                      "type": "gauge",
                      "valueDisplayMode": "color",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": std.sort([
                        {
                          "color": "green",
                          "value": null,
                        },
                        {
                          "color": "yellow",
                          "value": c.thresholds.PREDICTION,
                        },
                        {
                          "color": "red",
                          "value": c.thresholds.NEAR_LIMIT,
                        },
                        {
                          "color": "semi-dark-red",
                          "value": 1.0,
                        },
                      ], value),
                    },
                  },
                  {
                    "id": "min",
                    "value": 0,
                  },
                  {
                    "id": "max",
                    "value": 1,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSparkJobThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSparkJobThrottled"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Waiting",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(max by (" + label + ", app, query, side, user, client_id) (\n  (\n    (\n      (\n        last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n        unless\n        spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`} offset 10m\n      )\n      unless\n      (\n        last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n        >=\n        last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[1h] offset 10m)\n      )\n    )\n    or\n    increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n  ) / (10 * 60)\n), \"client\", \" / \", \"app\", \"query\", \"side\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join(max by (" + label + ", app, query, side, user, client_id) (\n  spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n), \"client\", \" / \", \"app\", \"query\", \"side\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    (\n      (\n        (\n          (\n            (\n              (\n                0 * max by (" + label + ", app, query, side, user, client_id) (\n                  spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",user!=\"\",client_id!=\"\"}\n                ) + on (user, client_id) group_left () max by (user, client_id) (\n                  max by (" + label + ", quota_type, user, client_id) (\n                    kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"fetch|request\"}\n                    >\n                    0\n                  )\n                )\n              )\n              or\n              (\n                0 * max by (" + label + ", app, query, side, user, client_id) (\n                  spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",user!=\"\",client_id!=\"\"}\n                ) + on (user, client_id) group_left () max by (user, client_id) (\n                  max by (" + label + ", quota_type, user, client_id) (\n                    kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"produce|request\"}\n                    >\n                    0\n                  )\n                )\n              )\n            )\n            or\n            (\n              0 * max by (" + label + ", app, query, side, user, client_id) (\n                spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",user!=\"\",client_id!=\"\"}\n              ) + on (user, client_id) group_left () max by (user, client_id) (\n                max by (" + label + ", quota_type, user, client_id) (\n                  kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"controller_mutation|request\"}\n                  >\n                  0\n                )\n              )\n            )\n          )\n          or\n          (\n            0 * max by (" + label + ", app, query, side, user, client_id) (\n              spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",user!=\"\"}\n            ) + on (user) group_left () max by (user) (\n              max by (" + label + ", quota_type, user, client_id) (\n                kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"fetch|request\"}\n                >\n                0\n              )\n            )\n          )\n        )\n        or\n        (\n          0 * max by (" + label + ", app, query, side, user, client_id) (\n            spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",user!=\"\"}\n          ) + on (user) group_left () max by (user) (\n            max by (" + label + ", quota_type, user, client_id) (\n              kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"produce|request\"}\n              >\n              0\n            )\n          )\n        )\n      )\n      or\n      (\n        0 * max by (" + label + ", app, query, side, user, client_id) (\n          spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",user!=\"\"}\n        ) + on (user) group_left () max by (user) (\n          max by (" + label + ", quota_type, user, client_id) (\n            kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"controller_mutation|request\"}\n            >\n            0\n          )\n        )\n      )\n    )\n    or\n    (\n      0 * max by (" + label + ", app, query, side, user, client_id) (\n        spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",client_id!=\"\"}\n      ) + on (client_id) group_left () max by (client_id) (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"fetch|request\"}\n          >\n          0\n        )\n      )\n    )\n  )\n  or\n  (\n    0 * max by (" + label + ", app, query, side, user, client_id) (\n      spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",client_id!=\"\"}\n    ) + on (client_id) group_left () max by (client_id) (\n      max by (" + label + ", quota_type, user, client_id) (\n        kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"produce|request\"}\n        >\n        0\n      )\n    )\n  )\n)\nor\n(\n  0 * max by (" + label + ", app, query, side, user, client_id) (\n    spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",client_id!=\"\"}\n  ) + on (client_id) group_left () max by (client_id) (\n    max by (" + label + ", quota_type, user, client_id) (\n      kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"controller_mutation|request\"}\n      >\n      0\n    )\n  )\n), \"client\", \" / \", \"app\", \"query\", \"side\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    (\n      (\n        (\n          (\n            (\n              (\n                0 * max by (" + label + ", app, query, side, user, client_id) (\n                  spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",user!=\"\",client_id!=\"\"}\n                ) + on (user, client_id) group_left () max by (user, client_id) (\n                  max by (" + label + ", quota_type, user, client_id) (\n                    kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"fetch|request\"}\n                  )\n                )\n              )\n              or\n              (\n                0 * max by (" + label + ", app, query, side, user, client_id) (\n                  spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",user!=\"\",client_id!=\"\"}\n                ) + on (user, client_id) group_left () max by (user, client_id) (\n                  max by (" + label + ", quota_type, user, client_id) (\n                    kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"produce|request\"}\n                  )\n                )\n              )\n            )\n            or\n            (\n              0 * max by (" + label + ", app, query, side, user, client_id) (\n                spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",user!=\"\",client_id!=\"\"}\n              ) + on (user, client_id) group_left () max by (user, client_id) (\n                max by (" + label + ", quota_type, user, client_id) (\n                  kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"controller_mutation|request\"}\n                )\n              )\n            )\n          )\n          or\n          (\n            0 * max by (" + label + ", app, query, side, user, client_id) (\n              spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",user!=\"\"}\n            ) + on (user) group_left () max by (user) (\n              max by (" + label + ", quota_type, user, client_id) (\n                kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"fetch|request\"}\n              )\n            )\n          )\n        )\n        or\n        (\n          0 * max by (" + label + ", app, query, side, user, client_id) (\n            spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",user!=\"\"}\n          ) + on (user) group_left () max by (user) (\n            max by (" + label + ", quota_type, user, client_id) (\n              kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"produce|request\"}\n            )\n          )\n        )\n      )\n      or\n      (\n        0 * max by (" + label + ", app, query, side, user, client_id) (\n          spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",user!=\"\"}\n        ) + on (user) group_left () max by (user) (\n          max by (" + label + ", quota_type, user, client_id) (\n            kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"controller_mutation|request\"}\n          )\n        )\n      )\n    )\n    or\n    (\n      0 * max by (" + label + ", app, query, side, user, client_id) (\n        spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",client_id!=\"\"}\n      ) + on (client_id) group_left () max by (client_id) (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"fetch|request\"}\n        )\n      )\n    )\n  )\n  or\n  (\n    0 * max by (" + label + ", app, query, side, user, client_id) (\n      spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",client_id!=\"\"}\n    ) + on (client_id) group_left () max by (client_id) (\n      max by (" + label + ", quota_type, user, client_id) (\n        kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"produce|request\"}\n      )\n    )\n  )\n)\nor\n(\n  0 * max by (" + label + ", app, query, side, user, client_id) (\n    spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",client_id!=\"\"}\n  ) + on (client_id) group_left () max by (client_id) (\n    max by (" + label + ", quota_type, user, client_id) (\n      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"controller_mutation|request\"}\n    )\n  )\n), \"client\", \" / \", \"app\", \"query\", \"side\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "D",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    (\n      (\n        (\n          (\n            (\n              (\n                (\n                  0 * max by (" + label + ", app, query, side, user, client_id) (\n                    spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",user!=\"\",client_id!=\"\"}\n                  ) + on (user, client_id) group_left () max by (user, client_id) (\n                    3 + 0 * (\n                      max by (" + label + ", quota_type, user, client_id) (\n                        kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"fetch|request\"}\n                      )\n                    )\n                  )\n                )\n                or\n                (\n                  0 * max by (" + label + ", app, query, side, user, client_id) (\n                    spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",user!=\"\",client_id!=\"\"}\n                  ) + on (user, client_id) group_left () max by (user, client_id) (\n                    3 + 0 * (\n                      max by (" + label + ", quota_type, user, client_id) (\n                        kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"produce|request\"}\n                      )\n                    )\n                  )\n                )\n              )\n              or\n              (\n                0 * max by (" + label + ", app, query, side, user, client_id) (\n                  spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",user!=\"\",client_id!=\"\"}\n                ) + on (user, client_id) group_left () max by (user, client_id) (\n                  3 + 0 * (\n                    max by (" + label + ", quota_type, user, client_id) (\n                      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\",quota_type=~\"controller_mutation|request\"}\n                    )\n                  )\n                )\n              )\n            )\n            or\n            (\n              0 * max by (" + label + ", app, query, side, user, client_id) (\n                spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",user!=\"\"}\n              ) + on (user) group_left () max by (user) (\n                2 + 0 * (\n                  max by (" + label + ", quota_type, user, client_id) (\n                    kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"fetch|request\"}\n                  )\n                )\n              )\n            )\n          )\n          or\n          (\n            0 * max by (" + label + ", app, query, side, user, client_id) (\n              spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",user!=\"\"}\n            ) + on (user) group_left () max by (user) (\n              2 + 0 * (\n                max by (" + label + ", quota_type, user, client_id) (\n                  kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"produce|request\"}\n                )\n              )\n            )\n          )\n        )\n        or\n        (\n          0 * max by (" + label + ", app, query, side, user, client_id) (\n            spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",user!=\"\"}\n          ) + on (user) group_left () max by (user) (\n            2 + 0 * (\n              max by (" + label + ", quota_type, user, client_id) (\n                kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\",quota_type=~\"controller_mutation|request\"}\n              )\n            )\n          )\n        )\n      )\n      or\n      (\n        0 * max by (" + label + ", app, query, side, user, client_id) (\n          spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"read\",client_id!=\"\"}\n        ) + on (client_id) group_left () max by (client_id) (\n          1 + 0 * (\n            max by (" + label + ", quota_type, user, client_id) (\n              kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"fetch|request\"}\n            )\n          )\n        )\n      )\n    )\n    or\n    (\n      0 * max by (" + label + ", app, query, side, user, client_id) (\n        spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"write\",client_id!=\"\"}\n      ) + on (client_id) group_left () max by (client_id) (\n        1 + 0 * (\n          max by (" + label + ", quota_type, user, client_id) (\n            kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"produce|request\"}\n          )\n        )\n      )\n    )\n  )\n  or\n  (\n    0 * max by (" + label + ", app, query, side, user, client_id) (\n      spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,side=\"admin\",client_id!=\"\"}\n    ) + on (client_id) group_left () max by (client_id) (\n      1 + 0 * (\n        max by (" + label + ", quota_type, user, client_id) (\n          kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\",quota_type=~\"controller_mutation|request\"}\n        )\n      )\n    )\n  )\n)\nor\n(\n  0 * max by (" + label + ", app, query, side, user, client_id) (\n    spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n  )\n), \"client\", \" / \", \"app\", \"query\", \"side\", \"user\", \"client_id\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "E",
              "legendFormat": "",
            },
          ],
          "title": "Jobs that wait for Kafka",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "app": true,
                  "query": true,
                  "side": true,
                  "user": true,
                  "client_id": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  "Value #E": true,
                  "Value #C": true,
                  "Value #D": true,
                },
                "indexByName": {
                  "app": 0,
                  "query": 1,
                  "side": 2,
                  "user": 3,
                  "client_id": 4,
                  "Value #A": 5,
                  "Value": 5,
                  "Value #B": 6,
                  "Value #E": 7,
                  "Value #C": 8,
                  "Value #D": 9,
                },
                "renameByName": {
                  "app": "Job",
                  "query": "Query",
                  "side": "Side",
                  "user": "User",
                  "client_id": "Client-id",
                  "Value #A": "Waiting",
                  "Value": "Waiting",
                  "Value #B": "Longest",
                  "Value #E": "Seen as",
                  "Value #C": "Delay",
                  "Value #D": "Used",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 24,
            "x": 0,
            "y": 1,
          },
          "id": 2,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 14,
          },
          "id": 3,
          "panels": [],
          "title": "The same clients, as brokers see them",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Throttle time of the clients of each job per second, over ten minutes: 1 means that one task does nothing but wait.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.SPARK_THROTTLED,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSparkJobThrottled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSparkJobThrottled"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", app, query, side) (\n  (\n    (\n      (\n        last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n        unless\n        spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`} offset 10m\n      )\n      unless\n      (\n        last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n        >=\n        last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[1h] offset 10m)\n      )\n    )\n    or\n    increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n  ) / (10 * 60)\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}} {{query}} {{side}}",
            },
          ],
          "title": "Waiting, by job",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 0,
            "y": 15,
          },
          "id": 4,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Average delay that brokers report for the users and client-ids of these jobs. Depending on the rule, brokers measure users, client-ids or pairs.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "orange",
                    "value": c.thresholds.THROTTLED,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.CLIENT_TIMEOUT,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaThrottleBeyondClientTimeout",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaThrottleBeyondClientTimeout"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  (\n    (\n      max by (" + label + ", quota_type, user, client_id) (\n        kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\"} > 0\n      )\n    )\n    and on (user, client_id)\n    (spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,user!=\"\",client_id!=\"\"})\n  )\n  or\n  (\n    (\n      max by (" + label + ", quota_type, user, client_id) (\n        kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\"} > 0\n      )\n    )\n    and on (user)\n    (spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,user!=\"\"})\n  )\n)\nor\n(\n  (\n    max by (" + label + ", quota_type, user, client_id) (\n      kafka_quota_throttle_time_seconds{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\"} > 0\n    )\n  )\n  and on (client_id)\n  (spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,client_id!=\"\"})\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{quota_type}} {{user}} / {{client_id}}",
            },
          ],
          "title": "The brokers' view: delay",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 8,
            "y": 15,
          },
          "id": 5,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "How much of their limit the users and client-ids of these jobs use on the busiest broker.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "yellow",
                    "value": c.thresholds.PREDICTION,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.NEAR_LIMIT,
                  },
                  {
                    "color": "semi-dark-red",
                    "value": 1.0,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "percentunit",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaNearLimit",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaNearLimit"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "table",
              "placement": "bottom",
              "calcs": [
                "lastNotNull",
                "max",
              ],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  (\n    (\n      max by (" + label + ", quota_type, user, client_id) (\n        kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id!=\"\"}\n      )\n    )\n    and on (user, client_id)\n    (spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,user!=\"\",client_id!=\"\"})\n  )\n  or\n  (\n    (\n      max by (" + label + ", quota_type, user, client_id) (\n        kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user!=\"\",client_id=\"\"}\n      )\n    )\n    and on (user)\n    (spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,user!=\"\"})\n  )\n)\nor\n(\n  (\n    max by (" + label + ", quota_type, user, client_id) (\n      kafka_quota_utilization_ratio{" + label + "=~\"$cluster\",user=\"\",client_id!=\"\"}\n    )\n  )\n  and on (client_id)\n  (spark_kafka_throttle_max_seconds{app=~`${app:regex}`,query=~`${query:regex}`,client_id!=\"\"})\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{quota_type}} {{user}} / {{client_id}}",
            },
          ],
          "title": "The brokers' view: share of the limit",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 16,
            "y": 15,
          },
          "id": 6,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 23,
          },
          "id": 7,
          "panels": [],
          "title": "Attempts",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Task attempts that repeated a failed one, by the cause of the failure. kafka_quota is a refusal (error 89), kafka_timeout_throttled a timeout while the client was throttled. Causes that never occurred are left out.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 40,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "normal",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSparkRetries",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSparkRetries"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  sum by (" + label + ", app, cause) (\n    (\n      (\n        last_over_time(spark_task_retries_total{app=~`${app:regex}`}[$__rate_interval])\n        unless\n        spark_task_retries_total{app=~`${app:regex}`} offset $__rate_interval\n      )\n      unless\n      (\n        last_over_time(spark_task_retries_total{app=~`${app:regex}`}[$__rate_interval])\n        >=\n        last_over_time(spark_task_retries_total{app=~`${app:regex}`}[1h] offset $__rate_interval)\n      )\n    )\n    or\n    increase(spark_task_retries_total{app=~`${app:regex}`}[$__rate_interval])\n  )\n)\nand on (app, cause)\n(spark_task_retries_total{app=~`${app:regex}`} > 0)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}} {{cause}}",
            },
          ],
          "title": "Repeated task attempts, by cause",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 0,
            "y": 24,
          },
          "id": 8,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Failed task attempts, by cause. Causes that never occurred are left out.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 40,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "normal",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(\n  sum by (" + label + ", app, cause) (\n    (\n      (\n        last_over_time(spark_task_failures_total{app=~`${app:regex}`}[$__rate_interval])\n        unless\n        spark_task_failures_total{app=~`${app:regex}`} offset $__rate_interval\n      )\n      unless\n      (\n        last_over_time(spark_task_failures_total{app=~`${app:regex}`}[$__rate_interval])\n        >=\n        last_over_time(spark_task_failures_total{app=~`${app:regex}`}[1h] offset $__rate_interval)\n      )\n    )\n    or\n    increase(spark_task_failures_total{app=~`${app:regex}`}[$__rate_interval])\n  )\n)\nand on (app, cause)\n(spark_task_failures_total{app=~`${app:regex}`} > 0)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}} {{cause}}",
            },
          ],
          "title": "Failed task attempts, by cause",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 8,
            "y": 24,
          },
          "id": 9,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Stages started again, Admin calls repeated after a refusal, and executors lost.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", app) (\n  (\n    (\n      last_over_time(spark_stage_retries_total{app=~`${app:regex}`}[$__rate_interval])\n      unless\n      spark_stage_retries_total{app=~`${app:regex}`} offset $__rate_interval\n    )\n    unless\n    (\n      last_over_time(spark_stage_retries_total{app=~`${app:regex}`}[$__rate_interval])\n      >=\n      last_over_time(spark_stage_retries_total{app=~`${app:regex}`}[1h] offset $__rate_interval)\n    )\n  )\n  or\n  increase(spark_stage_retries_total{app=~`${app:regex}`}[$__rate_interval])\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}} stages",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", app) (\n  (\n    (\n      last_over_time(spark_kafka_admin_quota_retries_total{app=~`${app:regex}`}[$__rate_interval])\n      unless\n      spark_kafka_admin_quota_retries_total{app=~`${app:regex}`} offset $__rate_interval\n    )\n    unless\n    (\n      last_over_time(spark_kafka_admin_quota_retries_total{app=~`${app:regex}`}[$__rate_interval])\n      >=\n      last_over_time(spark_kafka_admin_quota_retries_total{app=~`${app:regex}`}[1h] offset $__rate_interval)\n    )\n  )\n  or\n  increase(spark_kafka_admin_quota_retries_total{app=~`${app:regex}`}[$__rate_interval])\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} {{app}} Admin calls",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", app) (\n  (\n    (\n      last_over_time(spark_executors_lost_total{app=~`${app:regex}`}[$__rate_interval])\n      unless\n      spark_executors_lost_total{app=~`${app:regex}`} offset $__rate_interval\n    )\n    unless\n    (\n      last_over_time(spark_executors_lost_total{app=~`${app:regex}`}[$__rate_interval])\n      >=\n      last_over_time(spark_executors_lost_total{app=~`${app:regex}`}[1h] offset $__rate_interval)\n    )\n  )\n  or\n  increase(spark_executors_lost_total{app=~`${app:regex}`}[$__rate_interval])\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "C",
              "legendFormat": "{{" + label + "}} {{app}} executors",
            },
          ],
          "title": "Repeated stages and Admin calls, lost executors",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 16,
            "y": 24,
          },
          "id": 10,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 32,
          },
          "id": 11,
          "panels": [],
          "title": "Streaming queries",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Time since this streaming query last reported its progress.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.SPARK_STALLED,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSparkQueryStalled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSparkQueryStalled"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", app, query) (\n  spark_query_progress_age_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}} {{query}}",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", app, query) (\n  spark_query_trigger_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} {{app}} {{query}} trigger",
            },
          ],
          "title": "Time since the last progress",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 6,
            "x": 0,
            "y": 33,
          },
          "id": 12,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "How far the worst partition, and all on average, are behind the newest offset.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", app, query) (\n  spark_query_max_offsets_behind{app=~`${app:regex}`,query=~`${query:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}} {{query}} worst",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", app, query) (\n  spark_query_avg_offsets_behind{app=~`${app:regex}`,query=~`${query:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} {{app}} {{query}} average",
            },
          ],
          "title": "Offsets behind",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 6,
            "x": 6,
            "y": 33,
          },
          "id": 13,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "How long each phase of the last micro-batch took.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", app, query, phase) (\n  spark_query_batch_duration_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}} {{query}} {{phase}}",
            },
          ],
          "title": "Duration of the last batch, by phase",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 6,
            "x": 12,
            "y": 33,
          },
          "id": 14,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Starts of this streaming query after the first.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ", app, query) (\n  (\n    (\n      last_over_time(spark_query_restarts_total{app=~`${app:regex}`,query=~`${query:regex}`}[$__rate_interval])\n      unless\n      spark_query_restarts_total{app=~`${app:regex}`,query=~`${query:regex}`} offset $__rate_interval\n    )\n    unless\n    (\n      last_over_time(spark_query_restarts_total{app=~`${app:regex}`,query=~`${query:regex}`}[$__rate_interval])\n      >=\n      last_over_time(spark_query_restarts_total{app=~`${app:regex}`,query=~`${query:regex}`}[1h] offset $__rate_interval)\n    )\n  )\n  or\n  increase(spark_query_restarts_total{app=~`${app:regex}`,query=~`${query:regex}`}[$__rate_interval])\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}} {{query}}",
            },
          ],
          "title": "Restarts",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 6,
            "x": 18,
            "y": 33,
          },
          "id": 15,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 41,
          },
          "id": 16,
          "panels": [],
          "title": "Under the limit",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Streaming queries that read Kafka and were throttled for 10 % or more of the last ten minutes. Backlog: offsets behind the newest. maxOffsetsPerTrigger/s: the largest value that the limit allows for each second of the trigger interval. Catch-up: time to read the backlog at this limit, measured over two minutes; a query cannot catch up if producers add more than it reads.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Job",
                },
                "properties": [],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Query",
                },
                "properties": [],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Backlog",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "maxOffsetsPerTrigger/s",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 200,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Catch-up",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Catches up",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 140,
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "0": {
                            "text": "cannot catch up",
                            "index": 0,
                          },
                          "1": {
                            "text": "yes",
                            "index": 1,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSparkQueryStalled",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSparkQueryStalled"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Backlog",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    max by (" + label + ", app, query) (\n      spark_query_backlog_offsets{app=~`${app:regex}`,query=~`${query:regex}`}\n    )\n  )\n  and on (" + label + ", app, query)\n  (\n    max by (" + label + ", app, query) (\n      (\n        (\n          (\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n            unless\n            spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`} offset 10m\n          )\n          unless\n          (\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n            >=\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[1h] offset 10m)\n          )\n        )\n        or\n        increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n      ) / (10 * 60)\n    )\n    >\n    0.1\n  )\n)\nor\n(\n  (\n    max by (" + label + ", app, query) (\n      spark_query_backlog_offsets{app=~`${app:regex}`,query=~`${query:regex}`}\n    )\n  )\n  and on (" + label + ", app)\n  (\n    max by (" + label + ", app) (\n      (\n        (\n          (\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n            unless\n            spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"} offset 10m\n          )\n          unless\n          (\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n            >=\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[1h] offset 10m)\n          )\n        )\n        or\n        increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n      ) / (10 * 60)\n    )\n    >\n    0.1\n  )\n), \"entity\", \" / \", \"app\", \"query\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    max by (" + label + ", app, query) (\n      spark_query_read_offsets_per_second{app=~`${app:regex}`,query=~`${query:regex}`}\n    )\n  )\n  and on (" + label + ", app, query)\n  (\n    max by (" + label + ", app, query) (\n      (\n        (\n          (\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n            unless\n            spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`} offset 10m\n          )\n          unless\n          (\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n            >=\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[1h] offset 10m)\n          )\n        )\n        or\n        increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n      ) / (10 * 60)\n    )\n    >\n    0.1\n  )\n)\nor\n(\n  (\n    max by (" + label + ", app, query) (\n      spark_query_read_offsets_per_second{app=~`${app:regex}`,query=~`${query:regex}`}\n    )\n  )\n  and on (" + label + ", app)\n  (\n    max by (" + label + ", app) (\n      (\n        (\n          (\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n            unless\n            spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"} offset 10m\n          )\n          unless\n          (\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n            >=\n            last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[1h] offset 10m)\n          )\n        )\n        or\n        increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n      ) / (10 * 60)\n    )\n    >\n    0.1\n  )\n), \"entity\", \" / \", \"app\", \"query\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    (\n      max by (" + label + ", app, query) (\n        spark_query_catch_up_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n      )\n    )\n    and on (" + label + ", app, query)\n    (\n      max by (" + label + ", app, query) (\n        (\n          (\n            (\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n              unless\n              spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`} offset 10m\n            )\n            unless\n            (\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n              >=\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[1h] offset 10m)\n            )\n          )\n          or\n          increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n        ) / (10 * 60)\n      )\n      >\n      0.1\n    )\n  )\n  or\n  (\n    (\n      max by (" + label + ", app, query) (\n        spark_query_catch_up_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n      )\n    )\n    and on (" + label + ", app)\n    (\n      max by (" + label + ", app) (\n        (\n          (\n            (\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n              unless\n              spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"} offset 10m\n            )\n            unless\n            (\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n              >=\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[1h] offset 10m)\n            )\n          )\n          or\n          increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n        ) / (10 * 60)\n      )\n      >\n      0.1\n    )\n  )\n)\n<\nInf, \"entity\", \" / \", \"app\", \"query\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "label_join((\n  (\n    (\n      max by (" + label + ", app, query) (\n        spark_query_catch_up_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n      )\n    )\n    and on (" + label + ", app, query)\n    (\n      max by (" + label + ", app, query) (\n        (\n          (\n            (\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n              unless\n              spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`} offset 10m\n            )\n            unless\n            (\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n              >=\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[1h] offset 10m)\n            )\n          )\n          or\n          increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n        ) / (10 * 60)\n      )\n      >\n      0.1\n    )\n  )\n  or\n  (\n    (\n      max by (" + label + ", app, query) (\n        spark_query_catch_up_seconds{app=~`${app:regex}`,query=~`${query:regex}`}\n      )\n    )\n    and on (" + label + ", app)\n    (\n      max by (" + label + ", app) (\n        (\n          (\n            (\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n              unless\n              spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"} offset 10m\n            )\n            unless\n            (\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n              >=\n              last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[1h] offset 10m)\n            )\n          )\n          or\n          increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=\"\"}[10m])\n        ) / (10 * 60)\n      )\n      >\n      0.1\n    )\n  )\n)\n< bool\nInf, \"entity\", \" / \", \"app\", \"query\")",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "D",
              "legendFormat": "",
            },
          ],
          "title": "Throttled streaming queries",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "app": true,
                  "query": true,
                  "Value #A": true,
                  "Value": true,
                  "Value #B": true,
                  "Value #C": true,
                  "Value #D": true,
                },
                "indexByName": {
                  "app": 0,
                  "query": 1,
                  "Value #A": 2,
                  "Value": 2,
                  "Value #B": 3,
                  "Value #C": 4,
                  "Value #D": 5,
                },
                "renameByName": {
                  "app": "Job",
                  "query": "Query",
                  "Value #A": "Backlog",
                  "Value": "Backlog",
                  "Value #B": "maxOffsetsPerTrigger/s",
                  "Value #C": "Catch-up",
                  "Value #D": "Catches up",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 16,
            "x": 0,
            "y": 42,
          },
          "id": 17,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Share of the time of a job that its throttle times can be on the critical path: their sum, as if no two clients waited at the same time, and never more than all. `quotascope spark report` knows how the tasks ran.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "percentunit",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "clamp_max(\n  sum by (" + label + ", app) (\n    (\n      (\n        (\n          last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n          unless\n          spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`} offset 10m\n        )\n        unless\n        (\n          last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n          >=\n          last_over_time(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[1h] offset 10m)\n        )\n      )\n      or\n      increase(spark_kafka_throttled_seconds_total{app=~`${app:regex}`,query=~`${query:regex}`}[10m])\n    ) / (10 * 60)\n  ),\n  1\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{app}}",
            },
          ],
          "title": "Saved without the quota, at most",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 13,
            "w": 8,
            "x": 16,
            "y": 42,
          },
          "id": 18,
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 55,
          },
          "id": 19,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Events handled, and those that could not be, per second.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "cps",
                },
                "overrides": [],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaSparkEventsLost",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSparkEventsLost"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "sum by (" + label + ", app) (rate(spark_listener_events_total{app=~`${app:regex}`}[$__rate_interval]))",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{app}} handled",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "sum by (" + label + ", app) (rate(spark_listener_lost_events_total{app=~`${app:regex}`}[$__rate_interval]))",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} {{app}} lost",
                },
              ],
              "title": "Events of the listener",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 0,
                "y": 56,
              },
              "id": 20,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Delay of the listener behind the events.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "s",
                },
                "overrides": [],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", app) (spark_listener_lag_seconds{app=~`${app:regex}`})",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{app}}",
                },
              ],
              "title": "How far the listener is behind",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 8,
                "y": 56,
              },
              "id": 21,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Task attempts that did not report their waits (their executor or Python process ended), and failures of parts of the listener.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "short",
                },
                "overrides": [],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "sum by (" + label + ", app) (\n  (\n    (\n      last_over_time(spark_kafka_unknown_attempts_total{app=~`${app:regex}`}[$__rate_interval])\n      unless\n      spark_kafka_unknown_attempts_total{app=~`${app:regex}`} offset $__rate_interval\n    )\n    unless\n    (\n      last_over_time(spark_kafka_unknown_attempts_total{app=~`${app:regex}`}[$__rate_interval])\n      >=\n      last_over_time(spark_kafka_unknown_attempts_total{app=~`${app:regex}`}[1h] offset $__rate_interval)\n    )\n  )\n  or\n  increase(spark_kafka_unknown_attempts_total{app=~`${app:regex}`}[$__rate_interval])\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{app}} attempts",
                },
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "sum by (" + label + ", app, part) (\n  (\n    (\n      last_over_time(spark_listener_problems_total{app=~`${app:regex}`}[$__rate_interval])\n      unless\n      spark_listener_problems_total{app=~`${app:regex}`} offset $__rate_interval\n    )\n    unless\n    (\n      last_over_time(spark_listener_problems_total{app=~`${app:regex}`}[$__rate_interval])\n      >=\n      last_over_time(spark_listener_problems_total{app=~`${app:regex}`}[1h] offset $__rate_interval)\n    )\n  )\n  or\n  increase(spark_listener_problems_total{app=~`${app:regex}`}[$__rate_interval])\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "B",
                  "legendFormat": "{{" + label + "}} {{app}} {{part}}",
                },
              ],
              "title": "What is missing",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 16,
                "y": 56,
              },
              "id": 22,
            },
          ],
          "title": "The listener",
          "type": "row",
        },
      ],
      "refresh": "30s",
      "schemaVersion": 42,
      "time": {
        "from": "now-1h",
        "to": "now",
      },
      "timepicker": {
        "hidden": false,
        "refresh_intervals": [
          "10s",
          "30s",
          "1m",
          "5m",
          "15m",
        ],
      },
      "timezone": "browser",
      "version": 0,
    },
    "quotascope-exporter.json": {
      "uid": "quotascope-exporter",
      "title": "Kafka quotas / Exporter",
      "description": "Whether the exporter reads every broker and knows the limits that are in force.",
      "tags": [
        "kafka",
        "quotascope",
      ],
      "editable": false,
      "graphTooltip": 1,
      "links": [
        {
          "asDropdown": true,
          "icon": "external link",
          "includeVars": true,
          "keepTime": true,
          "tags": [
            "quotascope",
          ],
          "targetBlank": false,
          "title": "Quotas",
          "tooltip": "",
          "type": "dashboards",
          "url": "",
        },
      ],
      "annotations": {
        "list": [
          {
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "enable": true,
            "expr": "label_join(\n  max by (" + label + ", quota_key) (\n    increase(quotascope_limit_changes_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n  )\n  >\n  0,\n  \"change\",\n  \" \",\n  \"" + label + "\",\n  \"quota_key\"\n)",
            "iconColor": "purple",
            "name": "Limits changed",
            "step": "60s",
            "textFormat": "{{change}}",
            "titleFormat": "Limits changed",
          },
        ],
      },
      "templating": {
        "list": [
          {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "hide": 0,
            "options": [],
            "query": "prometheus",
            "refresh": 1,
          },
          {
            "name": "cluster",
            "label": "Cluster",
            "type": "query",
            "hide": 0,
            "options": [],
            "query": "label_values(quotascope_build_info, " + label + ")",
            "current": {
              "selected": true,
              "text": "All",
              "value": "$__all",
            },
            "datasource": {
              "type": "prometheus",
              "uid": "${datasource}",
            },
            "includeAll": true,
            "multi": true,
            "allValue": ".*",
            "refresh": 2,
            "sort": 1,
          },
        ],
      },
      "panels": [
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 0,
          },
          "id": 1,
          "panels": [],
          "title": "Right now",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Exporters that Prometheus reads, of clusters that had one within a day. Without one every dashboard is empty.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "red",
                    "value": null,
                  },
                  {
                    "color": "green",
                    "value": 1,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaExporterAbsent",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaExporterAbsent"),
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaExporterMissing",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaExporterMissing"),
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaRecordingRulesMissing",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaRecordingRulesMissing"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "(count by (" + label + ") (quotascope_build_info{" + label + "=~\"$cluster\"}))\nor\n0 * max by (" + label + ") (last_over_time(quotascope_build_info{" + label + "=~\"$cluster\"}[1d]))",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Exporters",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 0,
            "y": 1,
          },
          "id": 2,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Brokers and controllers that could not be read the last time.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "red",
                    "value": 1,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSourceDown",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSourceDown"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ") (min by (" + label + ", source) (quotascope_source_up{" + label + "=~\"$cluster\"}) == bool 0)",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Sources down",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 4,
            "y": 1,
          },
          "id": 3,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "How old the configured limits are that were joined with usage.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.LIMITS_AGE,
                  },
                ], value),
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "never read",
                    },
                  },
                },
              ],
              "unit": "s",
              "noValue": "never read",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaLimitsStale",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaLimitsStale"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ") (quotascope_limits_age_seconds{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Age of the limits",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 8,
            "y": 1,
          },
          "id": 4,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "How old the values are that the exporter shows.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.SNAPSHOT_AGE,
                  },
                ], value),
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "s",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSnapshotStale",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSnapshotStale"),
            },
          ]),
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ") (quotascope_snapshot_age_seconds{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Age of the numbers",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 12,
            "y": 1,
          },
          "id": 5,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "How many quota entities the exporter shows; of two exporters, the one that shows more. None: no quota is configured, or no client was seen yet.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "blue",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ") (quotascope_entities{" + label + "=~\"$cluster\",state=\"exported\"})",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Users and client-ids shown",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 16,
            "y": 1,
          },
          "id": 6,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Rules that the brokers have, of all kinds.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "blue",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "thresholds",
              },
              "custom": {},
              "mappings": [
                {
                  "type": "special",
                  "options": {
                    "match": "null+nan",
                    "result": {
                      "color": "#808080",
                      "index": 0,
                      "text": "no data",
                    },
                  },
                },
              ],
              "unit": "short",
              "noValue": "no data",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "textMode": "auto",
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {
              "calcs": [
                "lastNotNull",
              ],
              "fields": "",
              "values": false,
            },
            "percentChangeColorMode": "standard",
            "showPercentChange": false,
            "wideLayout": true,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ") (max by (" + label + ", quota_key) (kafka_quota_rules{" + label + "=~\"$cluster\"}))",
              "format": "time_series",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "{{" + label + "}}",
            },
          ],
          "title": "Configured rules",
          "transformations": [],
          "type": "stat",
          "gridPos": {
            "h": 6,
            "w": 4,
            "x": 20,
            "y": 1,
          },
          "id": 7,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 7,
          },
          "id": 8,
          "panels": [],
          "title": "Sources",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Each broker and controller, how the exporter speaks to it, and how its last read went.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "custom": {
                "align": "auto",
                "filterable": true,
                "cellOptions": {
                  "type": "auto",
                },
                "inspect": false,
              },
              "unit": "",
              "color": {
                "mode": "thresholds",
              },
              "mappings": [],
            },
            "overrides": [
              {
                "matcher": {
                  "id": "byName",
                  "options": "Source",
                },
                "properties": [],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "State",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 80,
                  },
                  {
                    "id": "custom.cellOptions",
                    "value": {
                      "mode": "basic",
                      "type": "color-background",
                    },
                  },
                  {
                    "id": "thresholds",
                    "value": {
                      "mode": "absolute",
                      "steps": [
                        {
                          "color": "red",
                          "value": null,
                        },
                        {
                          "color": "green",
                          "value": 1,
                        },
                      ],
                    },
                  },
                  {
                    "id": "mappings",
                    "value": [
                      {
                        "type": "value",
                        "options": {
                          "0": {
                            "text": "down",
                            "index": 0,
                          },
                          "1": {
                            "text": "up",
                            "index": 1,
                          },
                        },
                      },
                    ],
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Dialect",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 130,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Last read took",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "s",
                  },
                  {
                    "id": "custom.width",
                    "value": 155,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Numbers",
                },
                "properties": [
                  {
                    "id": "unit",
                    "value": "short",
                  },
                  {
                    "id": "custom.width",
                    "value": 100,
                  },
                ],
              },
              {
                "matcher": {
                  "id": "byName",
                  "options": "Cluster",
                },
                "properties": [
                  {
                    "id": "custom.width",
                    "value": 120,
                  },
                ],
              },
            ],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSourceDown",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSourceDown"),
            },
          ]),
          "options": {
            "showHeader": true,
            "sortBy": [
              {
                "desc": true,
                "displayName": "Last read took",
              },
            ],
            "cellHeight": "sm",
            "enablePagination": false,
            "frameIndex": 0,
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "min by (" + label + ", source) (quotascope_source_up{" + label + "=~\"$cluster\"})",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "A",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", source) (quotascope_source_duration_seconds{" + label + "=~\"$cluster\"})",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "B",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", source) (quotascope_source_readings{" + label + "=~\"$cluster\"})",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "C",
              "legendFormat": "",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", source, dialect) (quotascope_source_dialect_info{" + label + "=~\"$cluster\"})",
              "format": "table",
              "instant": true,
              "range": false,
              "refId": "D",
              "legendFormat": "",
            },
          ],
          "title": "Sources",
          "transformations": [
            {
              "id": "merge",
              "options": {},
            },
            {
              "id": "organize",
              "options": {
                "excludeByName": {},
                "includeByName": {
                  "source": true,
                  "Value #A": true,
                  "Value": true,
                  "dialect": true,
                  "Value #B": true,
                  "Value #C": true,
                  [label]: true,
                },
                "indexByName": {
                  "source": 0,
                  "Value #A": 1,
                  "Value": 1,
                  "dialect": 2,
                  "Value #B": 3,
                  "Value #C": 4,
                  [label]: 5,
                },
                "renameByName": {
                  "source": "Source",
                  "Value #A": "State",
                  "Value": "State",
                  "dialect": "Dialect",
                  "Value #B": "Last read took",
                  "Value #C": "Numbers",
                  [label]: "Cluster",
                },
              },
            },
          ],
          "type": "table",
          "gridPos": {
            "h": 13,
            "w": 24,
            "x": 0,
            "y": 8,
          },
          "id": 9,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "How long reading each source took. It should stay below Prometheus' scrape timeout, 10 s by default.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaReadsSlow",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaReadsSlow"),
            },
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSamplesMissed",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSamplesMissed"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", source) (quotascope_source_duration_seconds{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{source}}",
            },
          ],
          "title": "Duration of reads",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 0,
            "y": 21,
          },
          "id": 10,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "A source that is up but has no values has a wrong port, or its node has no quotas.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSourceEmpty",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSourceEmpty"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", source) (quotascope_source_readings{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{source}}",
            },
          ],
          "title": "Values read, by source",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 12,
            "y": 21,
          },
          "id": 11,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 29,
          },
          "id": 12,
          "panels": [],
          "title": "Limits",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Grows while the Admin API does not answer.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": std.sort([
                  {
                    "color": "green",
                    "value": null,
                  },
                  {
                    "color": "red",
                    "value": c.thresholds.LIMITS_AGE,
                  },
                ], value),
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "dashed",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "s",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaLimitsStale",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaLimitsStale"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ") (quotascope_limits_age_seconds{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} limits",
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ") (quotascope_snapshot_age_seconds{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "B",
              "legendFormat": "{{" + label + "}} numbers",
            },
          ],
          "title": "Age of the limits",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 0,
            "y": 30,
          },
          "id": 13,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Per second; the exporter's log has the reason.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "cps",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "sum by (" + label + ") (\n  rate(quotascope_limits_refresh_errors_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n)",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} errors",
            },
          ],
          "title": "Failed reads of the limits",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 12,
            "x": 12,
            "y": 30,
          },
          "id": 14,
        },
        {
          "collapsed": false,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 38,
          },
          "id": 15,
          "panels": [],
          "title": "What is shown",
          "type": "row",
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Quota entities of all nodes by state: exported, overflow (beyond the cap), excluded (by name), idle or stale. Of several exporters, their average. Entities that are not exported are missing on the other dashboards.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 40,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "normal",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "avg by (" + label + ", state) (quotascope_entities{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{state}}",
            },
          ],
          "title": "Users and client-ids, by state",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 0,
            "y": 39,
          },
          "id": 16,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "Series left out, by reason: overflow, excluded, idle or detail (of entities far from their limit).",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": linked([
            if c.runbook_url != null then {
              "asDropdown": false,
              "icon": "external link",
              "includeVars": false,
              "keepTime": false,
              "tags": [],
              "targetBlank": true,
              "tooltip": "",
              "type": "link",
              "title": "Runbook: KafkaQuotaSeriesDropped",
              [if c.runbook_url != null then "url"]: runbook("KafkaQuotaSeriesDropped"),
            },
          ]),
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", reason) (quotascope_series_dropped{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} {{reason}}",
            },
          ],
          "title": "Series left out",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 8,
            "y": 39,
          },
          "id": 17,
        },
        {
          "datasource": {
            "type": "prometheus",
            "uid": "${datasource}",
          },
          "description": "1 if the node uses a custom quota callback instead of the configured rules, else 0; absent if that is unknown. Only the limits of Strimzi's quotas plugin can be read.",
          "fieldConfig": {
            "defaults": {
              "thresholds": {
                "mode": "absolute",
                "steps": [
                  {
                    "color": "green",
                    "value": null,
                  },
                ],
              },
              "color": {
                "mode": "palette-classic",
              },
              "custom": {
                "axisPlacement": "auto",
                "axisLabel": "",
                "drawStyle": "line",
                "lineInterpolation": "linear",
                "barAlignment": 0,
                "lineWidth": 1,
                "fillOpacity": 8,
                "gradientMode": "none",
                "spanNulls": false,
                "showPoints": "never",
                "pointSize": 5,
                "stacking": {
                  "group": "A",
                  "mode": "none",
                },
                "scaleDistribution": {
                  "type": "linear",
                  "log": 2,
                },
                "hideFrom": {
                  "tooltip": false,
                  "viz": false,
                  "legend": false,
                },
                "thresholdsStyle": {
                  "mode": "off",
                },
                "axisSoftMin": 0,
              },
              "mappings": [],
              "unit": "short",
            },
            "overrides": [],
          },
          "links": [],
          "options": {
            "legend": {
              "displayMode": "list",
              "placement": "bottom",
              "calcs": [],
              "showLegend": true,
            },
            "tooltip": {
              "mode": "multi",
              "sort": "desc",
            },
          },
          "targets": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "editorMode": "code",
              "expr": "max by (" + label + ", broker) (quotascope_callback_detected{" + label + "=~\"$cluster\"})",
              "format": "time_series",
              "instant": false,
              "range": true,
              "refId": "A",
              "legendFormat": "{{" + label + "}} broker {{broker}}",
            },
          ],
          "title": "Custom quota callbacks",
          "transformations": [],
          "type": "timeseries",
          "gridPos": {
            "h": 8,
            "w": 8,
            "x": 16,
            "y": 39,
          },
          "id": 18,
        },
        {
          "collapsed": true,
          "gridPos": {
            "h": 1,
            "w": 24,
            "x": 0,
            "y": 47,
          },
          "id": 19,
          "panels": [
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Nodes that the last successful discovery found; absent without one.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "short",
                },
                "overrides": [],
              },
              "links": [],
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", discovery) (quotascope_discovered_sources{" + label + "=~\"$cluster\"})",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{discovery}}",
                },
              ],
              "title": "Nodes found, by discovery",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 0,
                "y": 48,
              },
              "id": 20,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Per second, by discovery. Meanwhile new brokers are not read, and removed ones are still expected. The exporter's log has the reason.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "cps",
                },
                "overrides": [],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaDiscoveryFailing",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaDiscoveryFailing"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "sum by (" + label + ", discovery) (\n  rate(quotascope_discovery_errors_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{discovery}}",
                },
              ],
              "title": "Failed discoveries of brokers",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 8,
                "y": 48,
              },
              "id": 21,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Per second: success, partial when the collector refused some points, or failure. The exporter's log has the reason.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 40,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "normal",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "cps",
                },
                "overrides": [],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaPushFailing",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaPushFailing"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "sum by (" + label + ", outcome) (\n  rate(quotascope_otlp_exports_total{" + label + "=~\"$cluster\"}[$__rate_interval])\n)",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} {{outcome}}",
                },
              ],
              "title": "Pushes, by outcome",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 8,
                "x": 16,
                "y": 48,
              },
              "id": 22,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "1 while the configuration that was last read is in force; 0 if it was refused, and the previous one is still in force. The exporter's log names file, line and field.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "short",
                },
                "overrides": [],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaConfigurationRefused",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaConfigurationRefused"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "min by (" + label + ") (quotascope_config_last_reload_successful{" + label + "=~\"$cluster\"})",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} configuration",
                },
              ],
              "title": "Configuration can be used",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 0,
                "y": 56,
              },
              "id": 23,
            },
            {
              "datasource": {
                "type": "prometheus",
                "uid": "${datasource}",
              },
              "description": "Entities whose reported and computed utilization differ by more than 2 points and 2 percent, because limits are out of date; absent without KIP-1373.",
              "fieldConfig": {
                "defaults": {
                  "thresholds": {
                    "mode": "absolute",
                    "steps": [
                      {
                        "color": "green",
                        "value": null,
                      },
                    ],
                  },
                  "color": {
                    "mode": "palette-classic",
                  },
                  "custom": {
                    "axisPlacement": "auto",
                    "axisLabel": "",
                    "drawStyle": "line",
                    "lineInterpolation": "linear",
                    "barAlignment": 0,
                    "lineWidth": 1,
                    "fillOpacity": 8,
                    "gradientMode": "none",
                    "spanNulls": false,
                    "showPoints": "never",
                    "pointSize": 5,
                    "stacking": {
                      "group": "A",
                      "mode": "none",
                    },
                    "scaleDistribution": {
                      "type": "linear",
                      "log": 2,
                    },
                    "hideFrom": {
                      "tooltip": false,
                      "viz": false,
                      "legend": false,
                    },
                    "thresholdsStyle": {
                      "mode": "off",
                    },
                    "axisSoftMin": 0,
                  },
                  "mappings": [],
                  "unit": "short",
                },
                "overrides": [],
              },
              "links": linked([
                if c.runbook_url != null then {
                  "asDropdown": false,
                  "icon": "external link",
                  "includeVars": false,
                  "keepTime": false,
                  "tags": [],
                  "targetBlank": true,
                  "tooltip": "",
                  "type": "link",
                  "title": "Runbook: KafkaQuotaUtilizationDisagrees",
                  [if c.runbook_url != null then "url"]: runbook("KafkaQuotaUtilizationDisagrees"),
                },
              ]),
              "options": {
                "legend": {
                  "displayMode": "list",
                  "placement": "bottom",
                  "calcs": [],
                  "showLegend": true,
                },
                "tooltip": {
                  "mode": "multi",
                  "sort": "desc",
                },
              },
              "targets": [
                {
                  "datasource": {
                    "type": "prometheus",
                    "uid": "${datasource}",
                  },
                  "editorMode": "code",
                  "expr": "max by (" + label + ", broker) (quotascope_utilization_disagreements{" + label + "=~\"$cluster\"})",
                  "format": "time_series",
                  "instant": false,
                  "range": true,
                  "refId": "A",
                  "legendFormat": "{{" + label + "}} broker {{broker}}",
                },
              ],
              "title": "Utilization that brokers report differently",
              "transformations": [],
              "type": "timeseries",
              "gridPos": {
                "h": 8,
                "w": 12,
                "x": 12,
                "y": 56,
              },
              "id": 24,
            },
          ],
          "title": "Discovery, push over OTLP, configuration, reported utilization",
          "type": "row",
        },
      ],
      "refresh": "30s",
      "schemaVersion": 42,
      "time": {
        "from": "now-1h",
        "to": "now",
      },
      "timepicker": {
        "hidden": false,
        "refresh_intervals": [
          "10s",
          "30s",
          "1m",
          "5m",
          "15m",
        ],
      },
      "timezone": "browser",
      "version": 0,
    },
  },
}
