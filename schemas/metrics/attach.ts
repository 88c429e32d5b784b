/** Metrics of the container that attaches to a stdio server without a command. */
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
    help: 'Number of times that the proxy attached to the server',
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
    help: 'Initialized runs of the server; every run after the first follows a restart',
    labels,
  },
  attachServerRestarts: {
    name: 'gatehouse_attach_server_restarts',
    kind: 'gauge',
    observed: true,
    help: 'Restart count of the server container in the cluster, at the time of the last attachment',
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
    help: 'Current client requests by state: with_server, or waiting for the server',
    labels: ['server', 'state'],
  },
} as const satisfies Record<string, MetricRow>
