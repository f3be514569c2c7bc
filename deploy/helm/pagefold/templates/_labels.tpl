{{- define "pagefold.selector" -}}
app.kubernetes.io/name: pagefold
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pagefold.labels" -}}
{{ include "pagefold.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
