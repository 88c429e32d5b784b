/** Metrics for the proxy and the hooks server, and metrics that every program exports. */
import type { MetricRow } from './row.ts'

/** Every program exports these metrics. */
export const processMetrics = {
  processCpu: {
    name: 'process_cpu',
    kind: 'counter',
    unit: 's',
    observed: true,
    help: 'CPU time used by the process, user and system',
    labels: [],
  },
  processMemory: {
    name: 'process_resident_memory_bytes',
    kind: 'gauge',
    observed: true,
    help: 'Resident memory used by the process',
    labels: [],
  },
  processStart: {
    name: 'process_start_time_seconds',
    kind: 'gauge',
    observed: true,
    help: 'When the process started, as Unix time',
    labels: [],
  },
  processFiles: {
    name: 'process_open_fds',
    kind: 'gauge',
    observed: true,
    help: 'Open file descriptors in the process, if the operating system reports them (Linux)',
    labels: [],
  },
  buildInfo: {
    name: 'gatehouse_build_info',
    kind: 'gauge',
    observed: true,
    help: 'Always 1; the labels contain the versions of the program and of Node',
    labels: ['version', 'node'],
  },
} as const satisfies Record<string, MetricRow>

/** Upper bounds, in seconds. */
const requestBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const
const hookBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

export const proxyMetrics = {
  proxyRequests: {
    name: 'gatehouse_proxy_requests',
    kind: 'counter',
    help: 'Answered requests, by HTTP method and status',
    labels: ['method', 'status'],
  },
  proxyRpcRequests: {
    name: 'gatehouse_proxy_rpc_requests',
    kind: 'counter',
    help: 'Received JSON-RPC messages, by method',
    labels: ['method'],
  },
  proxyRequestDuration: {
    name: 'gatehouse_proxy_request_duration',
    kind: 'histogram',
    unit: 's',
    bounds: requestBounds,
    help: 'Time from the arrival of a request until the end of its response, except for streams',
    labels: [],
  },
  proxyWorkers: {
    name: 'gatehouse_proxy_workers',
    kind: 'gauge',
    observed: true,
    help: 'Proxy processes that share the port',
    labels: [],
  },
} as const satisfies Record<string, MetricRow>

export const hooksMetrics = {
  hooksRequests: {
    name: 'gatehouse_hooks_requests',
    kind: 'counter',
    help: 'Answered hook calls',
    labels: ['kind', 'hook', 'code'],
  },
  hooksDenied: {
    name: 'gatehouse_hooks_admission_denied',
    kind: 'counter',
    help: 'Objects rejected by admission',
    labels: ['kind'],
  },
  hooksDuration: {
    name: 'gatehouse_hooks_request_duration',
    kind: 'histogram',
    unit: 's',
    bounds: hookBounds,
    help: 'Time to answer a hook call',
    labels: ['kind', 'hook'],
  },
  hooksPolicyEngineFailures: {
    name: 'gatehouse_hooks_policy_engine_failures',
    kind: 'counter',
    help: 'Policy engine failures; the engine is replaced each time',
    labels: [],
  },
  hooksCertificateExpiry: {
    name: 'gatehouse_certificate_expiry_timestamp_seconds',
    kind: 'gauge',
    observed: true,
    help: 'Expiry time of certificates that this program serves or trusts, as Unix time',
    labels: ['certificate'],
  },
} as const satisfies Record<string, MetricRow>
