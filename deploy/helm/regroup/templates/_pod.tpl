{{- /* What every container has: the image, what it may do, and where the settings and secrets are. */ -}}
{{- define "regroup.container" -}}
image: {{ include "regroup.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: settings, mountPath: /etc/regroup/regroup.toml, subPath: regroup.toml, readOnly: true}
  - {name: temporary, mountPath: /tmp}
  {{- if include "regroup.hasVolume" . }}
  - {name: tables, mountPath: /data}
  {{- else }}
  - {name: temporary, mountPath: /data, subPath: data}
  {{- end }}
  {{- range include "regroup.secrets" . | fromJsonArray }}
  - {name: {{ printf "secret-%s" . }}, mountPath: {{ printf "/etc/regroup/secrets/%s" . }}, readOnly: true}
  {{- end }}
{{- end }}

{{- define "regroup.env" -}}
- {name: REGROUP_WAREHOUSE, value: {{ .Values.warehouse | default "/data/warehouse" | quote }}}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "regroup.pagesContainer" -}}
- name: pages
  args: [serve, --config, /etc/regroup/regroup.toml]
  {{- include "regroup.container" . | nindent 2 }}
  env:
    {{- include "regroup.env" . | nindent 4 }}
    - {name: REGROUP_HOST, value: 0.0.0.0}
    - {name: REGROUP_PORT, value: {{ .Values.pages.port | quote }}}
    {{- with .Values.pages.tokenSecret }}{{ if .name }}
    - {name: REGROUP_PAGES_TOKEN, value: {{ printf "file:/etc/regroup/secrets/%s/%s" .name .key }}}
    {{- end }}{{ end }}
  ports:
    - {name: pages, containerPort: {{ .Values.pages.port }}}
  readinessProbe:
    httpGet: {path: /healthz, port: pages}
  livenessProbe:
    httpGet: {path: /healthz, port: pages}
    periodSeconds: 20
    failureThreshold: 6
  resources:
    {{- toYaml .Values.pages.resources | nindent 4 }}
{{- end }}

{{- /* A container that runs `command` of the jobs once, in the context `root`. */ -}}
{{- define "regroup.step" -}}
- name: {{ .command }}
  args: [{{ .command }}, --once, --config, /etc/regroup/regroup.toml]
  {{- include "regroup.container" .root | nindent 2 }}
  env:
    {{- include "regroup.env" .root | nindent 4 }}
  resources:
    {{- toYaml .root.Values.writer.resources | nindent 4 }}
{{- end }}

{{- define "regroup.podSpec" -}}
serviceAccountName: {{ include "regroup.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 90
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  # The volume may have many files: change their owner only if that of the folder is wrong.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "regroup.volumes" -}}
- name: settings
  configMap: {name: {{ include "regroup.name" . }}}
- name: temporary
  emptyDir: {}
{{- range include "regroup.secrets" . | fromJsonArray }}
- name: {{ printf "secret-%s" . }}
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "regroup.podMetadata" -}}
labels:
  {{- include "regroup.labels" . | nindent 2 }}
  {{- with .Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  # A change of the settings restarts the pods.
  checksum/settings: {{ .Values.settings | sha256sum }}
  {{- with .Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
