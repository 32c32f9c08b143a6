{{- /* Names are fixed: one muster per namespace. Helm refuses a second release for the same jobs. */ -}}

{{- define "muster.selector" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "muster.image" -}}
{{- $repository := required "image.repository is empty: expected the place of muster's image, as in --set image.repository=registry.example/muster (docs/install.md)" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* muster's permissions for jobs and their objects. A dry run needs the verb create, too. */ -}}
{{- define "muster.rules" -}}
{{- /* patch: the finalizer on SageMaker jobs, because Kubernetes does not stop training jobs. delete: ttlSecondsAfterFinished. */ -}}
- apiGroups: [muster.dev]
  resources: [distributedtrainingjobs]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [muster.dev]
  resources: [distributedtrainingjobs/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch, create]
{{- if .Values.queues.volcano }}
- apiGroups: [scheduling.volcano.sh]
  resources: [podgroups]
  verbs: [get, create, patch]
{{- end }}
{{- if .Values.queues.coscheduling }}
- apiGroups: [scheduling.x-k8s.io]
  resources: [podgroups]
  verbs: [get, create, patch]
{{- end }}
{{- end }}

{{- /* The operator's configuration file. */ -}}
{{- define "muster.config" -}}
{{- with .Values.nodePools }}
nodePools:
{{ toYaml . }}
{{- end }}
{{- with .Values.sagemaker }}
sagemaker:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.storage.s3Endpoint }}
storage:
  s3Endpoint: {{ . | quote }}
{{- end }}
{{- with .Values.tenancy }}
tenancy:
{{ toYaml . }}
{{- end }}
{{- with .Values.disruptions.taints }}
disruptions:
  taints: {{ toJson . }}
{{- end }}
{{- end }}

{{- /* The end of the names of a shard's objects. The first shard has none. */ -}}
{{- define "muster.suffix" -}}
{{- if . }}-{{ . }}{{ end -}}
{{- end }}

{{- /* The names of an object of each shard, as a JSON list: with "muster-collector", [muster-collector, muster-collector-1]. */ -}}
{{- define "muster.shardNames" -}}
{{- $names := list -}}
{{- range $shard := until (int .count) }}
{{- range $ending := $.endings | default (list "") }}
{{- $names = append $names (printf "%s%s%s" $.prefix (include "muster.suffix" $shard) $ending) }}
{{- end }}
{{- end }}
{{- toJson $names -}}
{{- end }}

{{- define "muster.account" -}}
- kind: ServiceAccount
  name: muster
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* The endpoint of a PodMonitor or ServiceMonitor. honorLabels: the label namespace is the job's. */ -}}
{{- define "muster.scrapeEndpoint" -}}
port: metrics
honorLabels: true
interval: {{ .interval }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with .relabelings }}
relabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* How a shard's replicas spread, as YAML; empty: as the affinity says. matchLabelKeys counts only pods of one version,
not those that a rolling update is about to delete. */ -}}
{{- define "muster.spread" -}}
{{- $constraints := .root.Values.topologySpreadConstraints -}}
{{- if not (or $constraints .root.Values.affinity) -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" -}}
{{- $constraints = append $constraints (dict "maxSkew" 1 "topologyKey" . "whenUnsatisfiable" "ScheduleAnyway") -}}
{{- end -}}
{{- end -}}
{{- $labels := merge (dict "muster.dev/shard" (.shard | toString)) (include "muster.selector" .root | fromYaml) -}}
{{- $complete := list -}}
{{- range $constraints -}}
{{- $constraint := deepCopy . -}}
{{- if not (hasKey . "labelSelector") -}}
{{- $constraint = set $constraint "labelSelector" (dict "matchLabels" $labels) -}}
{{- end -}}
{{- if not (hasKey . "matchLabelKeys") -}}
{{- $constraint = set $constraint "matchLabelKeys" (list "pod-template-hash") -}}
{{- end -}}
{{- $complete = append $complete $constraint -}}
{{- end -}}
{{- with $complete -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}

{{- /* The labels of the objects of a hook. Without the selector's labels no Service, Deployment or NetworkPolicy of the
operator selects its pod. */ -}}
{{- define "muster.hookLabels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/part-of: muster
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- /* Helm deletes a hook's objects after it has succeeded. After a failure they remain, and Helm 3.18 and newer print
the pod's log. */ -}}
{{- define "muster.hookAnnotations" -}}
helm.sh/hook: {{ .events }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
helm.sh/hook-output-log-policy: hook-failed
{{- end }}

{{- /* The spec of a pod that runs one command of the operator's image, as restricted as the operator. */ -}}
{{- define "muster.commandPod" -}}
serviceAccountName: {{ .account }}
restartPolicy: Never
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
containers:
- name: muster
  image: {{ include "muster.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: {{- toYaml .arguments | nindent 2 }}
  {{- with .root.Values.resources }}
  resources: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
  volumeMounts:
  - {name: tmp, mountPath: /tmp}
volumes:
- name: tmp
  emptyDir: {}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- /* The names of the CustomResourceDefinitions in crds/, as a JSON list. */ -}}
{{- define "muster.crdNames" -}}
{{- $names := list -}}
{{- range $path, $_ := .Files.Glob "crds/*.yaml" -}}
{{- $names = append $names ($.Files.Get $path | fromYaml).metadata.name -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{- /* The URL of a shard's collector for agents. */ -}}
{{- define "muster.collectorUrl" -}}
https://muster-collector{{ include "muster.suffix" .shard }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}:{{ .root.Values.collector.port }}
{{- end }}

{{- define "muster.boardSelector" -}}
app.kubernetes.io/name: muster-board
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What the board's account may read in the namespaces of jobs. */ -}}
{{- define "muster.boardRules" -}}
- apiGroups: [muster.dev]
  resources: [distributedtrainingjobs]
  verbs: [get, list, watch]
{{- if .Values.board.logs }}
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
{{- end }}
