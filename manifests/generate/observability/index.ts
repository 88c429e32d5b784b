/**
 * Monitoring for an installation: alert rules, dashboards and scraping of the servers, all derived from the metrics
 * table.
 */
import { jsonFile, yamlFile } from '../yaml.ts'
import type { Defaults } from '../defaults.ts'
import { prometheusRule, ruleFile } from './alerts.ts'
import { dashboards } from './dashboards.ts'

const folder = 'observability'

/** Returns file contents, keyed by path relative to manifests/. */
export function observability(defaults: Defaults): [string, string][] {
  return [
    [`${folder}/alerts.yaml`, yamlFile([ruleFile()])],
    [`${folder}/prometheus-rule.yaml`, yamlFile([prometheusRule(defaults)])],
    [`${folder}/pod-monitor.yaml`, yamlFile([podMonitor()])],
    ...dashboards().map(([name, dashboard]): [string, string] => [`${folder}/${name}`, jsonFile(dashboard)]),
  ]
}

/**
 * Scrapes every server that was created from a resource. The monitor sets no namespace, because it must be in the
 * namespace of the resources. Servers serve the metrics path only when their telemetry settings enable it.
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
          // Excludes the pods of MCP servers, which run next to their proxies.
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
          // Skips verification, because Prometheus connects to servers with spec.tls by pod address, which no
          // certificate covers.
          tlsConfig: { insecureSkipVerify: true },
        },
        // Proxies that are attached to a stdio server; other pods do not have this port.
        { port: 'attach-health', path: '/metrics', interval: '30s' },
      ],
    },
  }
}
