import type { MetricRow } from './row.ts'

export const guardrailMetrics = {
  guardrailMatches: {
    name: 'gatehouse_guardrail_matches',
    kind: 'counter',
    help: 'Guardrail matches by action taken: masked, refused, observed, marked, stripped or escaped',
    labels: ['server', 'rule', 'direction', 'outcome'],
  },
  guardrailFailures: {
    name: 'gatehouse_guardrail_failures',
    kind: 'counter',
    help: 'Arguments and results that were withheld because the guardrail check failed',
    labels: ['server', 'direction'],
  },
} as const satisfies Record<string, MetricRow>
