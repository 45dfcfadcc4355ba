{{- define "bolide.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "bolide.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "bolide.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "bolide.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "bolide.selectorLabels" -}}
app.kubernetes.io/name: {{ include "bolide.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "bolide.labels" -}}
{{ include "bolide.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "bolide.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}{{ include "bolide.fullname" . }}{{- else -}}default{{- end -}}
{{- end -}}

{{- define "bolide.image" -}}
{{- $suffix := ternary "-emulator" "" .Values.emulator -}}
{{- $tag := default (printf "%s%s" .Chart.AppVersion $suffix) .Values.image.tag -}}
{{- printf "%s:%s" .Values.image.repository $tag -}}
{{- end -}}

{{- define "bolide.secret" -}}
{{- default (printf "%s-key" (include "bolide.fullname" .)) .Values.key.existingSecret -}}
{{- end -}}
