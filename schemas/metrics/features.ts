/** Metrics for rate limits, quotas, guardrails and pages of apps. */
import { type MetricRow, seconds } from './row.ts'

const limiter = ['namespace', 'server'] as const

export const rateLimitMetrics = {
  rateLimitDecisions: {
    name: 'gatehouse_rate_limit_decisions',
    kind: 'counter',
    help: 'Rate limiter decisions',
    labels: [...limiter, 'decision', 'scope', 'operation_type'],
  },
  rateLimitRedisErrors: {
    name: 'gatehouse_rate_limit_redis_errors',
    kind: 'counter',
    help: 'Errors from the rate limiter store',
    labels: [...limiter, 'error_type'],
  },
  rateLimitFailOpen: {
    name: 'gatehouse_rate_limit_fail_open',
    kind: 'counter',
    help: 'Calls allowed because the rate limit could not be checked',
    labels: limiter,
  },
  rateLimitCheckLatency: {
    name: 'gatehouse_rate_limit_check_latency',
    ...seconds,
    help: 'Duration of rate limit checks',
    labels: limiter,
  },
} as const satisfies Record<string, MetricRow>

export const quotaMetrics = {
  quotaUsage: {
    name: 'gatehouse_quota_usage_ratio',
    kind: 'gauge',
    help: "Highest usage among a quota's budgets in this window, as a fraction of the limit and as seen by this replica; 1 means used up",
    labels: ['server', 'quota', 'per'],
    observed: true,
  },
  quotaExceeded: {
    name: 'gatehouse_quota_exceeded_calls',
    kind: 'counter',
    help: 'Calls over a quota: rejected if the action is block, only reported if it is warn',
    labels: ['server', 'quota', 'per', 'action'],
  },
  quotaFailOpen: {
    name: 'gatehouse_quota_fail_open',
    kind: 'counter',
    help: 'Calls allowed or not counted because the quota store was unavailable',
    labels: ['server'],
  },
  quotaStoreErrors: {
    name: 'gatehouse_quota_store_errors',
    kind: 'counter',
    help: 'Errors from the quota store',
    labels: ['server', 'error_type'],
  },
} as const satisfies Record<string, MetricRow>

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
  driftedPages: {
    name: 'gatehouse_vmcp_drifted_pages',
    kind: 'gauge',
    observed: true,
    help: 'Pages that clients have read and that differ from the lock, for each backend whose lock contains pages, by state: new or changed',
    labels: ['target.workload_name', 'state'],
  },
} as const satisfies Record<string, MetricRow>
