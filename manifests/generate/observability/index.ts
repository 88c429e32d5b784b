/** What observes an installation: alert rules, dashboards and scraping of the servers, all from the table of metrics. */
import { jsonFile, yamlFile } from '../yaml.ts'
import type { Defaults } from '../defaults.ts'
import { prometheusRule, ruleFile } from './alerts.ts'
import { dashboards } from './dashboards.ts'

const folder = 'observability'

/** Path relative to manifests/ -> content. */
export function observability(defaults: Defaults): [string, string][] {
  return [
    [`${folder}/alerts.yaml`, yamlFile([ruleFile()])],
    [`${folder}/prometheus-rule.yaml`, yamlFile([prometheusRule(defaults)])],
    [`${folder}/pod-monitor.yaml`, yamlFile([podMonitor()])],
    ...dashboards().map(([name, dashboard]): [string, string] => [`${folder}/${name}`, jsonFile(dashboard)]),
  ]
}

/**
 * Scrapes every server that was made from a resource. It belongs into the namespace of the resources, so it names none.
 * Servers answer only where their telemetry asks for the path.
 */
function podMonitor(): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PodMonitor',
    metadata: { name: 'gatehouse-servers' },
    spec: {
      selector: {
        matchLabels: { 'gatehouse.dev/managed': 'true' },
        matchExpressions: [
          { key: 'app', operator: 'In', values: ['virtualmcpserver', 'mcpserver', 'mcpremoteproxy'] },
          // The MCP server itself, beside its proxy, is not ours.
          { key: 'app.kubernetes.io/component', operator: 'NotIn', values: ['server'] },
        ],
      },
      podMetricsEndpoints: [
        {
          port: 'http',
          path: '/metrics',
          interval: '30s',
          relabelings: [
            {
              sourceLabels: ['__meta_kubernetes_pod_annotation_prometheus_io_scheme'],
              regex: '(https)',
              targetLabel: '__scheme__',
            },
          ],
          // Of servers with spec.tls: pods are reached by address, which no certificate names.
          tlsConfig: { insecureSkipVerify: true },
        },
        // Of what is attached to a stdio server; other pods have no such port.
        { port: 'attach-health', path: '/metrics', interval: '30s' },
      ],
    },
  }
}
