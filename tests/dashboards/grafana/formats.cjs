// What Grafana's own formats of variables, and those of its Prometheus data source, make of names.
// Standard input: {"names": ["name", …], "regex": that of a variable, "texts": what its query answers};
// standard output: {"formats": {"format": ["text", …]}, "chosen": [["option", …], …]}; a format of lists has `list` behind it,
// and an option is chosen with each name in the place of ${user}.
const { readFileSync } = require('fs');
const { join } = require('path');
const { JSDOM } = require('jsdom');
const { window } = new JSDOM('<html><body></body></html>', { url: 'http://localhost/' });
window.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.window = window;
for (const name of Object.getOwnPropertyNames(window)) {
  if (!(name in globalThis)) {
    try { globalThis[name] = window[name]; } catch { /* some cannot be read outside a browser */ }
  }
}

// the modules alone, with what they import: the packages around them want a browser that draws
function from(file, wanted, given) {
  const source = readFileSync(join(__dirname, 'node_modules', file), 'utf8').replace(/^import .*$/gm, '').replace(/^export \{.*$/gm, '');
  return new Function(...Object.keys(given), `${source}\nreturn { ${wanted} };`)(...Object.values(given));
}

const { Registry, escapeRegex, textUtil, dateTime, urlUtil, stringToJsRegex, VariableSort } = require('@grafana/data');
const { VariableFormatID } = require('@grafana/schema');
const { map, isArray, replace, isNumber, uniqBy, sortBy, toLower } = require('lodash');
const t = (_, text) => text;
const { formatRegistry } = from('@grafana/scenes/dist/esm/variables/interpolation/formatRegistry.js', 'formatRegistry', { t, map, isArray, replace, Registry, escapeRegex, textUtil, dateTime, urlUtil, VariableFormatID });
const { names, regex, texts } = JSON.parse(readFileSync(0, 'utf8'));
const variable = { state: { name: 'user' } };
const answer = {};
for (const { id, formatter } of formatRegistry.list()) {
  answer[id] = names.map((name) => formatter(name, [], variable));
  answer[`${id} list`] = names.map((name) => formatter([name], [], variable));
}
for (const isOn of [false, true]) {
  const config = { featureToggles: { prometheusSpecialCharsInLabelValues: isOn } };
  const { interpolateQueryExpr } = from('@grafana/prometheus/dist/esm/escaping.mjs', 'interpolateQueryExpr', { config });
  const toggle = isOn ? ', special characters' : '';
  answer[`data source${toggle}`] = names.map((name) => interpolateQueryExpr(name, {}));
  answer[`data source${toggle} list`] = names.map((name) => interpolateQueryExpr([name], { multi: true }));
}
const { metricNamesToVariableValues } = from('@grafana/scenes/dist/esm/variables/variants/query/utils.js', 'metricNamesToVariableValues', { isNumber, uniqBy, sortBy, toLower, stringToJsRegex, VariableSort });
const filled = (name) => regex.replace(/\$\{(\w+):lucene\}/g, (_, label) => formatRegistry.get('lucene').formatter(label === 'user' ? name : '', [], variable));
const chosen = names.map((name) => metricNamesToVariableValues({ variableRegEx: filled(name), sort: 0, metricNames: texts.map((text) => ({ text })) }).map(({ value }) => value));
process.stdout.write(JSON.stringify({ formats: answer, chosen }), () => process.exit(0));
