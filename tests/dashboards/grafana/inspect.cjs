// Asks Grafana's own code: which reducers and transformers it has, and what a table becomes.
// Standard input: {"tables": [{"transformations": […], "frames": […]}]}; standard output: JSON.
const { JSDOM } = require('jsdom');
const { window } = new JSDOM('<html><body></body></html>', { url: 'http://localhost/', pretendToBeVisual: true });
window.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.window = window;
for (const name of Object.getOwnPropertyNames(window)) {
  if (!(name in globalThis)) {
    try { globalThis[name] = window[name]; } catch { /* some cannot be read outside a browser */ }
  }
}
const data = require('@grafana/data');
const { firstValueFrom } = require('rxjs');
const transformers = new Map(Object.values(data.standardTransformers).map((each) => [each.id, each]));
data.standardTransformersRegistry.setInit(() => [...transformers.values()].map(
  (each) => ({ id: each.id, name: each.name, transformation: async () => each }),
));

async function shown({ transformations, frames }) {
  const made = frames.map((frame) => data.toDataFrame(frame));
  const [table] = await firstValueFrom(data.transformDataFrame(transformations, made));
  const names = table.fields.map((field) => data.getFieldDisplayName(field, table, [table]));
  const rows = Array.from({ length: table.length }, (_, row) => table.fields.map((field) => field.values[row] ?? null));
  const proxies = Array.from({ length: table.length }, (_, rowIndex) => {
    const values = data.getFieldDisplayValuesProxy({ frame: table, rowIndex });
    return Object.fromEntries(['cluster', 'user', 'client_id'].map((label) => [label, values[label]?.toString() ?? null]));
  });
  return { names, rows, links: proxies };
}

(async () => {
  const asked = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  const answer = {
    reducers: data.fieldReducers.list().map((reducer) => reducer.id),
    transformers: data.standardTransformersRegistry.list().map((transformer) => transformer.id),
    matchers: data.fieldMatchers.list().map((matcher) => matcher.id),
    tables: await Promise.all(asked.tables.map(shown)),
  };
  process.stdout.write(JSON.stringify(answer), () => process.exit(0));
})().catch((error) => { console.error(error); process.exit(1); });
