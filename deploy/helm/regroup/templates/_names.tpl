{{- define "regroup.name" -}}
{{- if contains "regroup" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-regroup" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "regroup.selector" -}}
app.kubernetes.io/name: regroup
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "regroup.labels" -}}
{{ include "regroup.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "regroup.image" -}}
{{- $repository := required "Set image.repository to the image that you built from deploy/Dockerfile." .Values.image.repository }}
{{- if .Values.image.digest }}{{ $repository }}@{{ .Values.image.digest }}{{ else }}{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "regroup.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "regroup.name" .) }}
{{- end }}

{{- /* Whether one pod writes the tables on a volume. Otherwise they are elsewhere. */ -}}
{{- define "regroup.hasVolume" -}}
{{- if and .Values.writer.enabled (not .Values.warehouse) }}true{{ end }}
{{- end }}

{{- define "regroup.hasMetrics" -}}
{{- if and (include "regroup.hasVolume" .) .Values.notify.enabled .Values.notify.metrics.tokenSecret.name }}true{{ end }}
{{- end }}

{{- /* Names of all Secrets that are mounted, each once. */ -}}
{{- define "regroup.secrets" -}}
{{- $names := .Values.secrets }}
{{- range list .Values.pages.tokenSecret.name .Values.notify.metrics.tokenSecret.name }}{{ if . }}{{ $names = append $names . }}{{ end }}{{ end }}
{{- toJson ($names | uniq) }}
{{- end }}
