/**
 * The templates of the chart that make no objects of our manifests: definitions as they are, questions to the cluster, and
 * what Helm prints.
 */
import { names } from '../objects.ts'

/** The files that hold definitions, each as it is. Helm upgrades what is a template, and keeps what says so. */
export const definitionsTemplate = `{{- /* Written by manifests/generate. Files of definitions, as they are: braces in them are no expressions. */}}
{{- if .Values.definitions.enabled }}
{{- range $path, $_ := .Files.Glob "definitions/*.yaml" }}
---
{{ $.Files.Get $path }}
{{- end }}
{{- end }}
`

const crd = (name: string) =>
  `lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" ${JSON.stringify(name)}`

function need(condition: string, definition: string, message: string): string {
  return `{{- if and (${condition}) (not (${crd(definition)})) }}
{{- fail ${JSON.stringify(`\n\n${message}\n`)} }}
{{- end }}`
}

const needs: readonly (readonly [condition: string, definition: string, message: string])[] = [
  [
    'not .Values.metacontroller.enabled',
    'compositecontrollers.metacontroller.k8s.io',
    'metacontroller.enabled is false, and this cluster has no Metacontroller: it does not know the kind CompositeController. Install Metacontroller 4.17.2 or newer first, or leave metacontroller.enabled at true.',
  ],
  [
    '.Values.integrations.gatewayAPI',
    'httproutes.gateway.networking.k8s.io',
    'integrations.gatewayAPI is true, and this cluster does not know the kind HTTPRoute. Install the definitions of the Gateway API first, or leave integrations.gatewayAPI at false.',
  ],
  [
    '.Values.serviceMonitor.enabled',
    'servicemonitors.monitoring.coreos.com',
    'serviceMonitor.enabled is true, and this cluster does not know the kind ServiceMonitor. Install the Prometheus operator first, or leave serviceMonitor.enabled at false.',
  ],
  [
    'eq .Values.certificates.mode "cert-manager"',
    'certificates.cert-manager.io',
    'certificates.mode is cert-manager, and this cluster does not know the kind Certificate. Install cert-manager first, or leave certificates.mode at self-signed.',
  ],
]

/**
 * What only the cluster knows, asked before anything is made of the templates. \`helm template\` has no cluster: nothing is
 * asked then. Metacontroller's own manifests and chart run it as a StatefulSet.
 */
export const clusterTemplate = `{{- /* Written by manifests/generate. What only a cluster knows; \`helm template\` has none to ask. */}}
{{- if lookup "v1" "Namespace" "" "kube-system" }}
${needs.map((one) => need(...one)).join('\n')}
{{- if .Values.metacontroller.enabled }}
{{- $sets := (lookup "apps/v1" "StatefulSet" "" "").items | default list }}
{{- $deployments := (lookup "apps/v1" "Deployment" .Values.metacontroller.namespace "").items | default list }}
{{- range $owner := concat $sets $deployments }}
{{- $own := and (eq $owner.metadata.namespace $.Release.Namespace) (eq $owner.metadata.name "${names.metacontroller}") }}
{{- if and (not $own) (ne (int $owner.spec.replicas) 0) }}
{{- range $container := $owner.spec.template.spec.containers }}
{{- $words := join " " (concat ($container.command | default list) ($container.args | default list)) }}
{{- $runs := or (regexMatch "(^|/)metacontroller([:@]|$)" $container.image) (regexMatch "(^|/)metacontroller( |$)" $words) }}
{{- $all := or (not (contains "-target-label-selector" $words)) (contains "gatehouse.dev/instance=default" $words) }}
{{- if and $runs $all }}
{{- fail (printf "\\n\\nA Metacontroller that takes the controllers of Gatehouse runs already: %s %s in the namespace %s. Two would work against each other. To use that one: --set metacontroller.enabled=false --set metacontroller.namespace=%s. To run one of our own beside it, give that one a --target-label-selector of its own.\\n" $owner.kind $owner.metadata.name $owner.metadata.namespace $owner.metadata.namespace) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
`

const hours = (path: string) => `(trimSuffix "h" .Values.${path} | int64)`

/** Rules between values, which a schema cannot say. Durations in other units than hours are compared by the job, and by cert-manager. */
export const rulesTemplate = `{{- /* Written by manifests/generate. Rules between values, which values.schema.json cannot say. */}}
{{- if and (regexMatch "^[0-9]+h$" .Values.certificates.lifetime) (regexMatch "^[0-9]+h$" .Values.certificates.renewBefore) }}
{{- if ge ${hours('certificates.renewBefore')} ${hours('certificates.lifetime')} }}
{{- fail (printf "\\n\\ncertificates.renewBefore is %s: it must be shorter than certificates.lifetime, which is %s.\\n" .Values.certificates.renewBefore .Values.certificates.lifetime) }}
{{- end }}
{{- end }}
`

/** What Helm prints after an install or upgrade. */
export const notesTemplate = `Gatehouse {{ .Chart.AppVersion }} is in the namespace {{ .Release.Namespace }}:

  hooks server      {{ .Values.hooks.replicas }} pods, certificate by {{ .Values.certificates.mode }}
  definitions       {{ if .Values.definitions.enabled }}of gatehouse.dev; helm upgrade brings them up to date, helm uninstall leaves them{{ else }}left to you: kubectl apply --server-side --force-conflicts -f manifests/crds{{ end }}
{{- if .Values.metacontroller.enabled }}
  Metacontroller    private, for the controllers labelled gatehouse.dev/instance=default. Another one without a label selector,
                    installed later, would take them too: give it a --target-label-selector, or set metacontroller.enabled=false.
                    Its definitions were made if there were none; neither upgrade nor uninstall touches them.
{{- else }}
  Metacontroller    shared, in the namespace {{ .Values.metacontroller.namespace }}. If it runs elsewhere, set metacontroller.namespace:
                    the network policy lets in nobody else.
{{- end }}

Is it working?

  kubectl -n {{ .Release.Namespace }} rollout status deployment/${names.hooks}
  helm test {{ .Release.Name }} -n {{ .Release.Namespace }}

A first server:

  kubectl apply -f - <<'EOF'
  apiVersion: gatehouse.dev/v1beta1
  kind: MCPServer
  metadata:
    name: hello
  spec:
    image: docker.io/mcp/everything:latest
    transport: stdio
  EOF
  kubectl wait --for=condition=Ready mcpserver/hello --timeout=5m
  kubectl get mcpserver hello

Kubernetes does not restrict the pods of a namespace by itself:

  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted
`
