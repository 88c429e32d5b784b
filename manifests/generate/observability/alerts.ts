/** Alert rules as a Prometheus rule file and as an object for the Prometheus operator. */
import { home } from '../../../schemas/index.ts'
import { alertRules, runbookPath } from '../../../schemas/metrics/index.ts'
import type { Defaults } from '../defaults.ts'

const docsUrl = `${home.repository}/blob/main/docs`

/** Content of a Prometheus rule file. */
export function ruleFile(): { readonly groups: readonly object[] } {
  return {
    groups: [
      {
        name: 'gatehouse',
        rules: alertRules.map((alert) => ({
          alert: alert.name,
          expr: alert.expr,
          for: alert.for,
          labels: { severity: alert.severity },
          annotations: {
            summary: alert.summary,
            description: alert.meaning,
            runbook_url: `${docsUrl}/${runbookPath(alert)}`,
          },
        })),
      },
    ],
  }
}

export function prometheusRule(defaults: Defaults): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: {
      name: 'gatehouse',
      namespace: defaults.namespace,
      labels: { 'app.kubernetes.io/part-of': 'gatehouse' },
    },
    spec: ruleFile(),
  }
}
