/** What the container tells that is attached to a stdio server without a command. */
import type { MetricRow } from './row.ts'

const labels = ['server'] as const

export const attachMetrics = {
  attachUp: {
    name: 'gatehouse_attach_up',
    kind: 'gauge',
    observed: true,
    help: '1 while the server is attached to and answers, else 0',
    labels,
  },
  attachments: {
    name: 'gatehouse_attach_attachments',
    kind: 'counter',
    help: 'Times that the server was attached to; from the second on, again',
    labels,
  },
  attachDetachments: {
    name: 'gatehouse_attach_detachments',
    kind: 'counter',
    help: 'Attachments that ended: stream_ended, server_restarted, server_gone, server_changed, failed, another_proxy, proxy_ended',
    labels: ['server', 'cause'],
  },
  attachInitializations: {
    name: 'gatehouse_attach_initializations',
    kind: 'counter',
    help: 'Runs of the server that were initialized; from the second on, after a restart of it',
    labels,
  },
  attachServerRestarts: {
    name: 'gatehouse_attach_server_restarts',
    kind: 'gauge',
    observed: true,
    help: 'Restarts of its container, as the cluster counted them when it was attached to',
    labels,
  },
  attachRequestsLost: {
    name: 'gatehouse_attach_requests_lost',
    kind: 'counter',
    help: 'Requests that were with the server when it was lost; each was answered with an error',
    labels,
  },
  attachLinesTooLong: {
    name: 'gatehouse_attach_lines_too_long',
    kind: 'counter',
    help: 'Lines of the server over the limit, which were dropped',
    labels,
  },
  attachRequests: {
    name: 'gatehouse_attach_requests',
    kind: 'gauge',
    observed: true,
    help: 'Requests of clients now: with_server, or waiting for it to be there',
    labels: ['server', 'state'],
  },
} as const satisfies Record<string, MetricRow>
