{{/* What the pods of this release are selected by. */}}
{{- define "quotascope.selector" -}}
app.kubernetes.io/name: quotascope
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "quotascope.labels" -}}
{{ include "quotascope.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{/* Of a list: the root, and the path. */}}
{{- define "quotascope.probe" -}}
{{- $root := first . -}}
{{- if $root.Values.probes.tcpSocket -}}
tcpSocket:
  port: metrics
{{- else -}}
httpGet:
  path: {{ last . }}
  port: metrics
  {{- with $root.Values.probes.httpGet }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
