// What a dashboard's JSON has to be, by Grafana's own types; enums are their texts in JSON.
import type {
  AnnotationQuery,
  Dashboard,
  FieldConfig,
  Panel,
  RowPanel,
  TableCellOptions,
  ThresholdsConfig,
  ValueMapping,
} from '@grafana/schema';
import type { Options as StatOptions } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type {
  FieldConfig as TableFieldConfig,
  Options as TableOptions,
} from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { Options as TextOptions } from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type {
  FieldConfig as TimeSeriesFieldConfig,
  Options as TimeSeriesOptions,
} from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

type Json<T> = T extends string
  ? `${T}`
  : T extends (infer U)[]
    ? Json<U>[]
    : T extends object
      ? { [K in keyof T]: Json<T[K]> }
      : T;

type DataSource = { type: 'prometheus'; uid: '${datasource}' };
type Query = {
  datasource: DataSource;
  editorMode: 'code';
  expr: string;
  format: 'table' | 'time_series';
  instant: boolean;
  legendFormat: string;
  range: boolean;
  refId: string;
};
type Override<Id extends string, Value> = { id: Id; value: Value };
type Link = { targetBlank: boolean; title: string; url: string };
type Property =
  | Override<'unit' | 'custom.axisLabel', string>
  | Override<'min' | 'max' | 'custom.width' | 'custom.minWidth' | 'custom.fillOpacity', number>
  | Override<'custom.cellOptions', Json<TableCellOptions>>
  | Override<'custom.lineStyle', Json<NonNullable<TimeSeriesFieldConfig['lineStyle']>>>
  | Override<'custom.stacking', Json<NonNullable<TimeSeriesFieldConfig['stacking']>>>
  | Override<'thresholds', Json<ThresholdsConfig>>
  | Override<'mappings', Json<ValueMapping>[]>
  | Override<'links', Link[]>
  | Override<'color', Json<NonNullable<FieldConfig['color']>>>;
type Custom<Field> = {
  defaults: Json<Omit<FieldConfig, 'custom'>> & { custom?: Json<Field> };
  overrides: { matcher: { id: 'byName' | 'byFrameRefID' | 'byType'; options: string }; properties: Property[] }[];
};
type Of<Type extends string, Options, Field> = Omit<
  Json<Panel>,
  'type' | 'options' | 'fieldConfig' | 'targets' | 'datasource'
> & {
  type: Type;
  options: Json<Options>;
  datasource: DataSource;
  fieldConfig: Custom<Field>;
  targets: Query[];
};

export type TimeSeries = Of<'timeseries', TimeSeriesOptions, TimeSeriesFieldConfig>;
export type Table = Of<'table', TableOptions, TableFieldConfig>;
export type Stat = Of<'stat', StatOptions, object>;
export type Text = Omit<Json<Panel>, 'type' | 'options'> & { type: 'text'; options: Json<TextOptions> };
export type Row = Omit<Json<RowPanel>, 'panels'> & { panels: object[] };
export type Annotation = Omit<Json<AnnotationQuery>, 'datasource'> & {
  datasource: DataSource;
  expr: string;
  step: string;
  textFormat: string;
  titleFormat: string;
};
export type Frame = Omit<Json<Dashboard>, 'panels' | 'annotations'>;
