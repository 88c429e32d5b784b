/** Quotas: how full they are, and what they refuse. */
import type { MetricRow } from './row.ts'

export const quotaMetrics = {
  quotaUsage: {
    name: 'gatehouse_quota_usage_ratio',
    kind: 'gauge',
    help: 'What the fullest budget of a quota has used of its limit in this window, as this replica saw it; 1: all of it',
    labels: ['server', 'quota', 'per'],
    observed: true,
  },
  quotaExceeded: {
    name: 'gatehouse_quota_exceeded_calls',
    kind: 'counter',
    help: 'Calls over a quota: refused with action block, told with action warn',
    labels: ['server', 'quota', 'per', 'action'],
  },
  quotaFailOpen: {
    name: 'gatehouse_quota_fail_open',
    kind: 'counter',
    help: 'Calls let through, or uses lost, because the store of the quotas could not be asked',
    labels: ['server'],
  },
  quotaStoreErrors: {
    name: 'gatehouse_quota_store_errors',
    kind: 'counter',
    help: 'Errors of the store of the quotas',
    labels: ['server', 'error_type'],
  },
} as const satisfies Record<string, MetricRow>
