/*
 * Draws a dashboard's JSON in a browser with what Grafana publishes of itself, and reports what there is to be seen.
 *
 * `draw(wanted)` shows a board and gives a report of it when all of it is there. @grafana/scenes lays it out, fills in variables,
 * runs queries and transformations, and applies overrides, annotations and links; @grafana/prometheus makes the queries and reads
 * the answers; @grafana/data formats values; @grafana/ui draws.
 *
 * Glue of ours is only what Grafana does not publish: `answered` and what it uses (the part of the data source that runs in Grafana's
 * server), `runRequest`, the registries' lists, the reading of rows and variables from JSON, and the outermost components of the
 * panels. The graph is the older one that @grafana/ui has, and marks of annotations are plain lines.
 */
import * as D from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { PrometheusDatasource } from '@grafana/prometheus';
import * as R from '@grafana/runtime';
import * as S from '@grafana/scenes';
import { BigValue, GlobalStyles, ThemeContext, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import React from 'react';
import { createRoot } from 'react-dom/client';
import { MemoryRouter } from 'react-router-dom';
import { from, map } from 'rxjs';

const SOURCE = { id: 1, uid: 'known', name: 'Prometheus', type: 'prometheus', access: 'proxy', isDefault: true, url: '/', meta: { id: 'prometheus', info: {} } };
const SCRAPES_OF_A_RATE = 4;
let theme, wanted, root, source;

// ---- the data source's part that runs in Grafana's server

async function ask(path, parameters) {
  const answer = await fetch(`${wanted.prometheus}/${path}?${new URLSearchParams(parameters)}`);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} ${parameters.query ?? parameters['match[]'] ?? ''}: ${text}`);
  return JSON.parse(text);
}

/** What Grafana's server gives for a POST to /api/ds/query: frames of Prometheus's answers, or an error, by query. */
async function answered({ queries, from: start, to: end }) {
  const one = async (query) => {
    try {
      return [query.refId, { status: 200, frames: await framesOf(query, start / 1000, end / 1000) }];
    } catch (error) {
      return [query.refId, { status: 400, error: String(error) }];
    }
  };
  return { results: Object.fromEntries(await Promise.all(queries.map(one))) };
}

async function framesOf(query, start, end) {
  const scrape = wanted.scrapeSeconds;
  const least = query.interval ? D.rangeUtil.intervalToSeconds(query.interval) : scrape;
  const step = Math.max(query.intervalMs / 1000, least, (end - start) / 11000);
  const rate = Math.max(step + scrape, SCRAPES_OF_A_RATE * scrape);
  const expr = query.expr.replaceAll('$__rate_interval', `${rate}s`).replaceAll('$__interval', `${step}s`).replaceAll('$__range', `${end - start}s`);
  const aligned = (at) => Math.floor(at / step) * step;
  const { data } = query.instant
    ? await ask('api/v1/query', { query: expr, time: end })
    : await ask('api/v1/query_range', { query: expr, start: aligned(start), end: aligned(end), step });
  const meta = { type: 'timeseries-multi', custom: { resultType: data.resultType }, executedQueryString: `Expr: ${expr}\nStep: ${step}s` };
  return data.result.map(({ metric, value, values = [value] }) => ({
    schema: {
      refId: query.refId,
      meta,
      fields: [
        { name: 'Time', type: 'time', typeInfo: { frame: 'time.Time' }, config: { interval: step * 1000 } },
        { name: 'Value', type: 'number', typeInfo: { frame: 'float64' }, labels: metric, config: { displayNameFromDS: seriesName(query, metric) } },
      ],
    },
    data: { values: [values.map(([at]) => at * 1000), values.map(([, number]) => Number(number))] },
  }));
}

function seriesName({ legendFormat, expr }, metric) {
  if (legendFormat) return legendFormat.replace(/{{\s*(.+?)\s*}}/g, (_, label) => metric[label] ?? '');
  const { __name__: name = '', ...labels } = metric;
  const inner = Object.entries(labels).map(([label, value]) => `${label}="${value}"`).join(', ');
  return name || inner ? `${name}{${inner}}` : expr;
}

/** What variables ask for; @grafana/prometheus makes no values of an error, and says no more of it. */
async function valuesOf(path, parameters) {
  try {
    return await ask(path, parameters);
  } catch (error) {
    wanted.refused.push(String(error));
    throw error;
  }
}

const backend = {
  fetch: ({ url, data, params }) => from((async () => {
    const resource = url.match(/\/resources\/(.*)$/);
    return { ok: true, status: 200, url, config: { url }, data: resource ? await valuesOf(resource[1], params || data) : await answered(data) };
  })()),
};

// ---- what Grafana's application registers

const NO_EDITOR = () => null;
const option = (path, process, more = {}) => ({
  id: path, path, name: path, process, editor: NO_EDITOR, override: NO_EDITOR, settings: {}, shouldApply: () => true, ...more,
});
const number = { shouldApply: (field) => field.type === D.FieldType.number };
const STANDARD_OPTIONS = [
  option('displayName', D.displayNameOverrideProcessor, { settings: { expandTemplateVars: true } }),
  option('unit', D.unitOverrideProcessor), option('noValue', D.stringOverrideProcessor), option('color', D.identityOverrideProcessor),
  option('min', D.numberOverrideProcessor, number), option('max', D.numberOverrideProcessor, number), option('decimals', D.numberOverrideProcessor, number),
  option('links', D.dataLinksOverrideProcessor), option('mappings', D.valueMappingsOverrideProcessor, { defaultValue: [] }),
  option('thresholds', D.thresholdsOverrideProcessor),
];
const GRAPH_OPTIONS = [
  'axisBorderShow', 'axisCenteredZero', 'axisColorMode', 'axisGridShow', 'axisLabel', 'axisPlacement', 'axisSoftMax', 'axisSoftMin', 'axisWidth',
  'barAlignment', 'barWidthFactor', 'drawStyle', 'fillBelowTo', 'fillOpacity', 'gradientMode', 'hideFrom', 'insertNulls', 'lineColor', 'lineInterpolation',
  'lineStyle', 'lineWidth', 'pointColor', 'pointSize', 'scaleDistribution', 'showPoints', 'showValues', 'spanNulls', 'stacking', 'thresholdsStyle', 'transform',
];
const TABLE_OPTIONS = ['align', 'cellOptions', 'filterable', 'footer', 'hideFrom', 'inspect', 'minWidth', 'tooltip', 'width', 'wrapHeaderText', 'wrapText'];

function runRequest(datasource, request, query = datasource.query.bind(datasource)) {
  return from(query(request)).pipe(map(({ data: series = [], error, errors }) => (
    { state: error || errors?.length ? D.LoadingState.Error : D.LoadingState.Done, series, timeRange: request.range, request, error, errors }
  )));
}

async function started() {
  await initPluginTranslations('grafana', []);
  theme = D.createTheme({ colors: { mode: 'dark' } });
  R.config.theme2 = theme;
  const filledIn = (text, variables, format) => S.sceneGraph.interpolate(variables?.__sceneObject?.value.valueOf() ?? wanted.scene, text, variables, format);
  R.setTemplateSrv({ replace: filledIn, getVariables: () => [], containsTemplate: (text) => /\$/.test(text), updateTimeRange: () => {}, getAdhocFilters: () => [] });
  R.setBackendSrv(backend);
  R.setRunRequest(runRequest);
  R.setAppEvents(new D.EventBusSrv());
  R.setEchoSrv({ addEvent() {}, addBackend() {}, flush() {} });
  R.setPluginImportUtils({ importPanelPlugin: async (id) => { throw new Error(`no panel of type ${id}`); }, getPanelPluginFromCache: () => undefined });
  const settings = (ref, variables) => {
    const uid = filledIn(ref?.uid ?? ref, variables);
    if (uid !== SOURCE.uid) throw new Error(`no data source ${uid}`);
    return SOURCE;
  };
  R.setDataSourceSrv({
    get: async (ref, variables) => settings(ref, variables) && source, getInstanceSettings: settings, getList: () => [SOURCE], reload() {}, registerRuntimeDataSource() {},
  });
  const transformers = new Map(Object.values(D.standardTransformers).map((each) => [each.id, each]));
  D.standardTransformersRegistry.setInit(() => [...transformers.values()].map((each) => ({ id: each.id, name: each.name, transformation: async () => each })));
  D.standardFieldConfigEditorRegistry.setInit(() => STANDARD_OPTIONS);
  panel('timeseries', Graph, GRAPH_OPTIONS);
  panel('table', Table, TABLE_OPTIONS);
  panel('stat', Stat, []);
}

function panel(pluginId, component, options) {
  const plugin = new D.PanelPlugin(component).useFieldConfig({
    useCustomConfig: (builder) => options.forEach((path) => builder.addCustomEditor(option(path, D.identityOverrideProcessor))),
  });
  // as Grafana's own graph does: else it gets no marks
  plugin.setDataSupport({ annotations: true });
  S.sceneUtils.registerRuntimePanelPlugin({ pluginId, plugin });
}

// ---- the outermost components of the panels

const Nothing = ({ fieldConfig, height }) => (
  <div className="nothing" style={{ height }}>{fieldConfig.defaults.noValue ?? 'No data'}</div>
);

function Graph({ data, timeRange, width, height, options, fieldConfig }) {
  const frames = data.series.filter((frame) => frame.length && frame.fields.some((field) => field.type === D.FieldType.number));
  if (!frames.length) return <Nothing fieldConfig={fieldConfig} height={height} />;
  return (
    <TimeSeries frames={frames} structureRev={data.structureRev} timeRange={timeRange} timeZone="utc" width={width} height={height} legend={options.legend} options={options}>
      {(config) => <Marks config={config} annotations={data.annotations} />}
    </TimeSeries>
  );
}

/** A graph takes hooks when it is made, and marks may come after that. */
function Marks({ config, annotations = [] }) {
  const graph = React.useRef(null);
  const marks = React.useRef([]);
  React.useLayoutEffect(() => {
    config.addHook('init', (u) => { graph.current = u; });
    config.addHook('draw', (u) => marks.current.forEach(({ time, timeEnd, color }) => {
      wanted.painted.add(color);
      const x = u.valToPos(time, 'x', true);
      u.ctx.save();
      if (timeEnd > time) {
        Object.assign(u.ctx, { fillStyle: color, globalAlpha: 0.1 });
        u.ctx.fillRect(x, u.bbox.top, u.valToPos(timeEnd, 'x', true) - x, u.bbox.height);
        u.ctx.globalAlpha = 1;
      }
      Object.assign(u.ctx, { strokeStyle: color, lineWidth: 2 });
      u.ctx.setLineDash([4, 4]);
      u.ctx.beginPath();
      u.ctx.moveTo(x, u.bbox.top);
      u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
      u.ctx.stroke();
      u.ctx.restore();
    }));
  }, [config]);
  React.useLayoutEffect(() => {
    marks.current = annotations.flatMap((frame) => new D.DataFrameView(frame).map(({ time, timeEnd, color }) => ({ time, timeEnd, color })));
    graph.current?.redraw(false);
  }, [annotations]);
  return null;
}

function Table({ data, timeRange, width, height, options, fieldConfig }) {
  const frame = data.series[options.frameIndex] ?? data.series[0];
  React.useMemo(() => D.cacheFieldDisplayNames(data.series), [data.series]);
  if (!frame?.fields.length) return <Nothing fieldConfig={fieldConfig} height={height} />;
  return (
    <TableNG data={frame} width={width} height={height} noHeader={!options.showHeader} sortBy={options.sortBy} cellHeight={options.cellHeight}
      enablePagination={options.enablePagination} fieldConfig={fieldConfig} timeRange={timeRange} getActions={() => []} structureRev={data.structureRev} />
  );
}

function Stat({ data, width, height, options, fieldConfig, replaceVariables, renderCounter }) {
  const values = () => D.getFieldDisplayValues({ fieldConfig, reduceOptions: options.reduceOptions, replaceVariables, theme, data: data.series, sparkline: false, timeZone: 'utc' });
  const one = ({ value, alignmentFactors, width, height, orientation, count }) => (
    <BigValue value={value.display} count={count} width={width} height={height} colorMode={options.colorMode} graphMode={options.graphMode} justifyMode={options.justifyMode}
      textMode={options.textMode} alignmentFactors={alignmentFactors} parentOrientation={orientation} theme={theme} wideLayout={options.wideLayout} />
  );
  return (
    <VizRepeater getValues={values} getAlignmentFactors={D.getDisplayValueAlignmentFactors} renderValue={one} width={width} height={height} source={data}
      itemSpacing={3} renderCounter={renderCounter} autoGrid orientation={options.orientation} />
  );
}

// ---- a board from its JSON

function variableOf({ type, name, label, hide, query, datasource, includeAll, isMulti, multi, allValue, refresh, sort, regex }) {
  const common = { name, label, hide };
  const chosen = wanted.variables[name];
  if (type === 'datasource') return new S.DataSourceVariable({ ...common, pluginId: query, value: SOURCE.uid, text: SOURCE.name });
  if (type === 'textbox') return new S.TextBoxVariable({ ...common, value: chosen ?? query });
  if (type === 'query') {
    const value = chosen ?? (includeAll ? '$__all' : '');
    return new S.QueryVariable({ ...common, query, datasource, includeAll, isMulti: multi, allValue, refresh, sort, regex, value: multi ? [value].flat() : value, text: value });
  }
  throw new Error(`no variable of type ${type}`);
}

function panelOf({ id, type, title, description, options, fieldConfig, targets, transformations, datasource }) {
  const queries = new S.SceneQueryRunner({ datasource, queries: targets });
  const $data = new S.SceneDataTransformer({ $data: queries, transformations: transformations ?? [] });
  return new S.VizPanel({ key: `panel-${id}`, pluginId: type, title, description, options, fieldConfig, $data });
}

const itemOf = (each) => new S.SceneGridItem({
  key: `item-${each.id}`, x: each.gridPos.x, y: each.gridPos.y, width: each.gridPos.w, height: each.gridPos.h, body: panelOf(each),
});

/** Rows with the panels below them; those of collapsed rows are shown when wished, and what follows moves down. */
function rowsOf(panels) {
  const rows = [];
  let moved = 0;
  const below = (each) => ({ ...each, gridPos: { ...each.gridPos, y: each.gridPos.y + moved } });
  for (const each of panels) {
    if (each.type !== 'row') {
      rows.at(-1).children.push(itemOf(below(each)));
      continue;
    }
    const opened = each.collapsed && wanted.expanded;
    rows.push({ title: each.title, y: each.gridPos.y + moved, isCollapsed: each.collapsed && !opened, children: each.panels.map((inner) => itemOf(below(inner))) });
    if (opened) moved += Math.max(...each.panels.map(({ gridPos }) => gridPos.y + gridPos.h)) - each.gridPos.y - 1;
  }
  return rows.map((row, index) => new S.SceneGridRow({ ...row, key: `row-${index}`, isCollapsible: true }));
}

function sceneOf({ title, templating, annotations, panels }) {
  const layers = annotations.list.map((query) => new S.dataLayers.AnnotationsDataLayer({ key: `marks-${query.name}`, name: query.name, query, isEnabled: query.enable }));
  return new S.EmbeddedScene({
    $timeRange: new S.SceneTimeRange({ from: new Date(wanted.from * 1000).toISOString(), to: new Date(wanted.to * 1000).toISOString(), timeZone: 'utc' }),
    $variables: new S.SceneVariableSet({ variables: templating.list.map(variableOf) }),
    $data: new S.SceneDataLayerSet({ layers }),
    controls: [new S.VariableValueSelectors({})],
    body: new S.SceneGridLayout({ children: rowsOf(panels) }),
  });
}

// ---- what there is to be seen

const panelsIn = (scene) => S.sceneGraph.findAllObjects(scene, (each) => each instanceof S.VizPanel && !S.sceneGraph.getAncestor(each, S.SceneGridRow).state.isCollapsed);
const layersIn = (scene) => scene.state.$data.state.layers;
const DONE = [D.LoadingState.Done, D.LoadingState.Error];

function isDone(scene) {
  const layers = layersIn(scene).map((each) => each.state.data);
  const data = panelsIn(scene).map((each) => S.sceneGraph.getData(each).state.data);
  return [...layers, ...data].every((each) => DONE.includes(each?.state)) && !scene.state.$variables.state.variables.some((each) => each.state.loading);
}

/** Texts that end in dots or are smaller than ten pixels, and tables wider than their panel. */
function cutIn(element) {
  const narrow = (each) => each.scrollWidth > each.clientWidth + 1;
  const texts = [...element.querySelectorAll('*')].filter((each) => narrow(each) && each.innerText?.trim() && getComputedStyle(each).textOverflow === 'ellipsis');
  const tables = [...element.querySelectorAll('[role=grid]')].filter(narrow);
  const small = [...element.querySelectorAll('*')].filter((each) => !each.children.length && each.innerText?.trim() && parseFloat(getComputedStyle(each).fontSize) < 10);
  return [...small.map((each) => `${each.innerText} is too small`), ...texts.map((each) => each.innerText), ...tables.map((each) => `columns, by ${each.scrollWidth - each.clientWidth} px`)];
}

/** Columns that a table is to be sorted by, and is not: as the texts in the drawn rows show, which are not all rows. */
function unsortedIn(element, { sortBy = [] }, [frame]) {
  if (!element.querySelector('[role=grid]')) return [];
  return sortBy.filter(({ displayName, desc }) => {
    const header = [...element.querySelectorAll('[role=columnheader]')].find((each) => each.innerText.trim() === displayName);
    const field = frame.fields.find((each) => D.getFieldDisplayName(each, frame) === displayName);
    if (!header || !field) return true;
    const cells = [...element.querySelectorAll(`[role=gridcell][aria-colindex="${header.ariaColIndex}"]`)];
    const least = (value) => value ?? -Number.MAX_VALUE;
    const due = [...field.values].sort((a, b) => (desc ? least(b) - least(a) : least(a) - least(b))).map((value) => D.formattedValueToString(field.display(value)));
    return !cells.length || cells.some((each, row) => each.innerText.replace(/\s/g, '') !== due[row].replace(/\s/g, ''));
  }).map(({ displayName }) => displayName);
}

const knownUnits = () => new Set(D.getValueFormats().flatMap(({ submenu }) => submenu.map(({ value }) => value)));

const fieldsOf = (series) => series.flatMap((frame) => frame.fields.filter(({ type }) => type !== D.FieldType.time).map((field) => ({
  name: D.getFieldDisplayName(field, frame, series),
  labels: field.labels ?? {},
  isUnitKnown: !field.config.unit || knownUnits().has(field.config.unit),
  links: frame.length && field.getLinks ? Array.from({ length: frame.length }, (_, row) => field.getLinks({ valueRowIndex: row })).flat().map(({ href }) => href) : [],
})));

function panelReport(each, links) {
  const { key, title, pluginId, _pluginLoadError } = each.state;
  const { series, errors, error } = each.applyFieldConfig(S.sceneGraph.getData(each).state.data);
  const element = document.querySelector(`[data-viz-panel-key="${key}"]`);
  return {
    title,
    type: pluginId,
    errors: [_pluginLoadError, ...(errors ?? [error]).map((one) => one?.message)].filter(Boolean),
    fields: fieldsOf(series),
    text: element.innerText,
    noValue: each.state.fieldConfig.defaults.noValue ?? null,
    nothing: element.querySelector('.nothing')?.innerText ?? null,
    cut: cutIn(element),
    unsorted: unsortedIn(element, each.state.options, series),
    links: links.map(({ url }) => each.interpolate(url)),
  };
}

function reportOf(scene, { panels }) {
  const links = Object.fromEntries(panels.flatMap((each) => [each, ...(each.panels ?? [])]).map((each) => [`panel-${each.id}`, each.links ?? []]));
  const layers = layersIn(scene).map((each) => each.state.data);
  return {
    panels: panelsIn(scene).map((each) => panelReport(each, links[each.state.key])),
    variables: scene.state.$variables.state.variables.map(({ state: { name, type, text, value, error, options } }) => (
      { name, type, text: String(text ?? value), error: error ? String(error) : null, options: options?.map((each) => each.value) ?? [] }
    )),
    marks: layers.flatMap((data) => data.series.flatMap((frame) => new D.DataFrameView(frame).map(({ text }) => text))),
    regions: layers.flatMap((data) => data.series.flatMap((frame) => new D.DataFrameView(frame).map(({ text, time, timeEnd }) => [text, time / 1000, (timeEnd ?? time) / 1000]))),
    painted: [...wanted.painted],
    refused: wanted.refused,
    // scenes keeps of a failed query of marks only that it failed
    errors: layers.filter(({ state }) => state === D.LoadingState.Error).map(() => 'the query failed'),
  };
}

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/**
 * Show a board and report what is seen once nothing moves any more.
 *
 * `wanted` has `board` (JSON), `prometheus` (URL), `from` and `to` (s since 1970), `scrapeSeconds`, `variables` (values by name), `expanded` (open
 * collapsed rows).
 */
window.draw = async (asked) => {
  wanted = { ...asked, scene: null, refused: [], painted: new Set() };
  if (!theme) await started();
  source = new PrometheusDatasource({ ...SOURCE, jsonData: { timeInterval: `${wanted.scrapeSeconds}s`, httpMethod: 'GET', disableRecordingRules: true } });
  root?.unmount();
  document.body.replaceChildren();
  const place = document.body.appendChild(document.createElement('main'));
  const scene = sceneOf(structuredClone(wanted.board));
  wanted.scene = scene;
  root = createRoot(place);
  root.render(
    <ThemeContext.Provider value={theme}>
      <MemoryRouter>
        <GlobalStyles hackNoBackdropBlur isExtensionSidebarOpen={false} />
        <h1>{wanted.board.title}</h1>
        <R.LocationServiceProvider service={R.locationService}><scene.Component model={scene} /></R.LocationServiceProvider>
      </MemoryRouter>
    </ThemeContext.Provider>,
  );
  for (let quiet = 0, before = '', left = 600; quiet < 3; left -= 1) {
    if (!left) throw new Error(`not drawn: ${panelsIn(scene).filter((each) => !DONE.includes(S.sceneGraph.getData(each).state.data?.state)).map((each) => each.state.title)}`);
    await pause(50);
    const now = place.innerHTML;
    quiet = isDone(scene) && now === before ? quiet + 1 : 0;
    before = now;
  }
  return { ...reportOf(scene, wanted.board), height: place.scrollHeight };
};
