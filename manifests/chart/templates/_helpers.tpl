{{/*
Labels that selectors use. They never change. Argument: the component, for example "hooks".
*/}}
{{- define "gatehouse.selectorLabels" -}}
app.kubernetes.io/name: gatehouse-{{ . }}
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/*
Labels of an object. Arguments: a list of the root context and the component.
*/}}
{{- define "gatehouse.labels" -}}
{{- $root := index . 0 -}}
{{- include "gatehouse.selectorLabels" (index . 1) }}
app.kubernetes.io/part-of: gatehouse
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Labels of a pod; podLabels take precedence over commonLabels. Arguments: as for gatehouse.labels.
*/}}
{{- define "gatehouse.podLabels" -}}
{{- $root := index . 0 -}}
{{- include "gatehouse.selectorLabels" (index . 1) }}
app.kubernetes.io/part-of: gatehouse
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
{{- with merge (dict) $root.Values.podLabels $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Metadata of a pod template. Arguments: as for gatehouse.labels.
*/}}
{{- define "gatehouse.podMetadata" -}}
{{- $root := index . 0 -}}
labels:
  {{- include "gatehouse.podLabels" . | nindent 2 }}
{{- with $root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
A ServiceAccount without a mounted token; pods that need one mount it themselves. Arguments: as for gatehouse.labels.
*/}}
{{- define "gatehouse.serviceAccount" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: gatehouse-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "gatehouse.labels" . | nindent 4 }}
  {{- with $root.Values.serviceAccountAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}

{{/*
Where pods run. Argument: a section of the values with nodeSelector, tolerations and affinity.
*/}}
{{- define "gatehouse.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "gatehouse.imagePullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
The restricted Pod Security Standard. The image sets the user id, because OpenShift assigns its own.
*/}}
{{- define "gatehouse.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gatehouse.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop:
    - ALL
{{- end }}

{{/*
Egress to DNS and to the API server. The API server is not a pod, so a policy can only name its ports. The ports are
those of pods and API servers on the usual distributions.
*/}}
{{- define "gatehouse.egress" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
    - {protocol: UDP, port: 5353}
    - {protocol: TCP, port: 5353}
- ports:
    - {protocol: TCP, port: 443}
    - {protocol: TCP, port: 6443}
    - {protocol: TCP, port: 8443}
    - {protocol: TCP, port: 16443}
{{- end }}

{{/*
The kinds and what their hooks create and read: kinds.yaml, which the build generates from the hooks' registry.
*/}}
{{- define "gatehouse.kinds" -}}
{{ .Files.Get "kinds.yaml" }}
{{- end }}

{{/*
Members that both validating webhooks share.
*/}}
{{- define "gatehouse.webhook" -}}
admissionReviewVersions: [v1]
sideEffects: None
failurePolicy: {{ .Values.admission.failurePolicy }}
matchPolicy: Equivalent
timeoutSeconds: 5
clientConfig:
  service:
    name: gatehouse-hooks
    namespace: {{ .Release.Namespace }}
    path: /validate
    port: 443
{{- end }}

{{/*
RBAC of the certificate job, limited to named objects. Arguments: a list of the root context, the verbs on the TLS Secret, and
whether the job patches the webhook configuration.
*/}}
{{- define "gatehouse.certificateRights" -}}
{{- $root := index . 0 -}}
{{ include "gatehouse.serviceAccount" (list $root "certificates") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: gatehouse-certificates
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "gatehouse.labels" (list $root "certificates") | nindent 4 }}
rules:
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: [gatehouse-hooks-tls]
    verbs: {{ index . 1 | toJson }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: gatehouse-certificates
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "gatehouse.labels" (list $root "certificates") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: gatehouse-certificates
subjects:
  - kind: ServiceAccount
    name: gatehouse-certificates
    namespace: {{ $root.Release.Namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: gatehouse-certificates
  labels:
    {{- include "gatehouse.labels" (list $root "certificates") | nindent 4 }}
rules:
  {{- if index . 2 }}
  - apiGroups: [admissionregistration.k8s.io]
    resources: [validatingwebhookconfigurations]
    resourceNames: [gatehouse-hooks]
    verbs: [get, patch]
  {{- end }}
  - apiGroups: [metacontroller.k8s.io]
    resources: [compositecontrollers]
    resourceNames:
      {{- include "gatehouse.controllerNames" $root | nindent 6 }}
    verbs: [get, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: gatehouse-certificates
  labels:
    {{- include "gatehouse.labels" (list $root "certificates") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: gatehouse-certificates
subjects:
  - kind: ServiceAccount
    name: gatehouse-certificates
    namespace: {{ $root.Release.Namespace }}
{{- end }}

{{/*
Names of the CompositeControllers, as a YAML list.
*/}}
{{- define "gatehouse.controllerNames" -}}
{{- range (include "gatehouse.kinds" . | fromYaml).kinds }}
- {{ .plural }}.gatehouse.dev
{{- end }}
{{- end }}

{{/*
The certificate job: once after each installation or upgrade, and on a schedule. A Job cannot be changed, so its name ends with
a hash of the values. Arguments: a list of the root context and the arguments of the program as a YAML list.
*/}}
{{- define "gatehouse.certificateJobs" -}}
{{- $root := index . 0 -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: gatehouse-certificates-{{ list $root.Chart.AppVersion $root.Values | toJson | sha256sum | trunc 10 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "gatehouse.labels" (list $root "certificates") | nindent 4 }}
spec:
  {{- include "gatehouse.certificateJob" . | nindent 2 }}
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: gatehouse-certificates
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "gatehouse.labels" (list $root "certificates") | nindent 4 }}
spec:
  schedule: {{ $root.Values.certificates.schedule | quote }}
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 3600
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      {{- include "gatehouse.certificateJob" . | nindent 6 }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: gatehouse-certificates
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "gatehouse.labels" (list $root "certificates") | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "gatehouse.selectorLabels" "certificates" | nindent 6 }}
  policyTypes: [Ingress, Egress]
  egress:
    {{- include "gatehouse.egress" $root | nindent 4 }}
{{- end }}

{{- define "gatehouse.certificateJob" -}}
{{- $root := index . 0 -}}
backoffLimit: 10
activeDeadlineSeconds: 900
ttlSecondsAfterFinished: 600
template:
  metadata:
    {{- include "gatehouse.podMetadata" (list $root "certificates") | nindent 4 }}
  spec:
    serviceAccountName: gatehouse-certificates
    automountServiceAccountToken: true
    restartPolicy: OnFailure
    securityContext:
      {{- include "gatehouse.podSecurityContext" $root | nindent 6 }}
    {{- include "gatehouse.imagePullSecrets" $root | nindent 4 }}
    {{- include "gatehouse.placement" $root.Values.hooks | nindent 4 }}
    containers:
      - name: certificates
        image: {{ $root.Values.images.hooks | quote }}
        imagePullPolicy: {{ $root.Values.images.pullPolicy }}
        args:
          {{- index . 1 | nindent 10 }}
          - --composite-controller
          {{- include "gatehouse.controllerNames" $root | nindent 10 }}
        resources:
          requests: {cpu: 50m, memory: 128Mi}
          limits: {memory: 256Mi}
        securityContext:
          {{- include "gatehouse.containerSecurityContext" $root | nindent 10 }}
{{- end }}
