/** What guardrails found. */
import type { MetricRow } from './row.ts'

export const guardrailMetrics = {
  guardrailMatches: {
    name: 'gatehouse_guardrail_matches',
    kind: 'counter',
    help: 'Matches of guardrails, by what became of them: masked, refused, observed, marked, stripped or escaped',
    labels: ['server', 'rule', 'direction', 'outcome'],
  },
  guardrailFailures: {
    name: 'gatehouse_guardrail_failures',
    kind: 'counter',
    help: 'Arguments and results that guardrails could not look through, and that were withheld',
    labels: ['server', 'direction'],
  },
} as const satisfies Record<string, MetricRow>
