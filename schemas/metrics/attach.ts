/** Metrics for the container that attaches to a stdio server without a command. */
import type { MetricRow } from './row.ts'

const labels = ['server'] as const

export const attachMetrics = {
  attachUp: {
    name: 'gatehouse_attach_up',
    kind: 'gauge',
    observed: true,
    help: '1 while the proxy is attached to the server and the server responds, otherwise 0',
    labels,
  },
  attachments: {
    name: 'gatehouse_attach_attachments',
    kind: 'counter',
    help: 'Number of times the proxy attached to the server',
    labels,
  },
  attachDetachments: {
    name: 'gatehouse_attach_detachments',
    kind: 'counter',
    help: 'Attachments that ended, by reason: stream_ended, server_restarted, server_gone, server_changed, failed, another_proxy, proxy_ended',
    labels: ['server', 'cause'],
  },
  attachInitializations: {
    name: 'gatehouse_attach_initializations',
    kind: 'counter',
    help: 'Number of times the server was initialized; each initialization after the first follows a restart',
    labels,
  },
  attachServerRestarts: {
    name: 'gatehouse_attach_server_restarts',
    kind: 'gauge',
    observed: true,
    help: "Kubernetes restart count of the server's container, at the time of the last attachment",
    labels,
  },
  attachRequestsLost: {
    name: 'gatehouse_attach_requests_lost',
    kind: 'counter',
    help: 'Requests in progress when the connection to the server was lost; each failed with an error',
    labels,
  },
  attachLinesTooLong: {
    name: 'gatehouse_attach_lines_too_long',
    kind: 'counter',
    help: 'Lines from the server that were dropped because they exceeded the size limit',
    labels,
  },
  attachRequests: {
    name: 'gatehouse_attach_requests',
    kind: 'gauge',
    observed: true,
    help: 'Pending client requests by state: with_server (sent to the server) or waiting (not sent yet)',
    labels: ['server', 'state'],
  },
} as const satisfies Record<string, MetricRow>
