{{- define "koordlet.image" -}}
{{- with $.Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- /* The configuration of a pool's agents; of (list $ OVERLAY). */ -}}
{{- define "koordlet.config" -}}
{{- $values := (index . 0).Values -}}
{{- $config := mergeOverwrite (deepCopy $values.agent.config) (deepCopy (index . 1)) -}}
{{- if $values.suspend }}{{ $_ := set $config "mode" "observe" }}{{ end -}}
{{- toYaml $config -}}
{{- end -}}
