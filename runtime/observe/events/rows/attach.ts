/** The rows of events about a stdio server that is attached to. */
import type { EventTable } from '../row.ts'

export const attachRows = {
  attach_state: {
    message: ({ attached, again, ended }) => {
      if (attached) return again ? 'the server is attached to again' : 'the server is attached to'
      return ended === 'proxy_ended' ? 'the server is left: this proxy ends' : 'the server is not attached to'
    },
    level: ({ attached, ended }) => (attached || ended === 'proxy_ended' ? 'info' : 'warn'),
    isNews: true,
    condition: ({ attached, reason, ended }) => ({
      id: 'attach_state',
      open:
        attached || ended === 'proxy_ended'
          ? undefined
          : { message: `the server is not attached to: ${reason}`, fix: fixes[reason] ?? look },
    }),
  },
  server_initialized: {
    message: ({ again }) =>
      again ? 'the server was started again, and is initialized' : 'the server is initialized',
    level: 'info',
  },
  server_requests_lost: {
    message: 'requests were lost with the server; each was answered with an error',
    level: 'warn',
  },
  server_line_too_long: {
    message: 'the server wrote a line that is longer than allowed; it was dropped',
    level: 'warn',
  },
} satisfies Partial<EventTable>

const look = 'see the condition Attached of the MCPServer, and the pod of the server'
const image = 'check the name of the image and imagePullSecrets'
const logs = 'see the log of the container mcp of the server, with --previous'

const fixes: Readonly<Record<string, string>> = {
  AccessRefused:
    "check the Role and RoleBinding of the proxy's service account: Metacontroller can only grant what it holds itself",
  AnotherProxyAttached:
    'nothing: this proxy attaches when the other one ends, or has been silent for a while',
  ApiServerError: 'look at the API server, and at quotas and admission of the namespace',
  ApiServerUnreachable: "let the proxy's pod reach the API server: look at egress rules and NetworkPolicies",
  ContainerEnded: logs,
  CrashLoopBackOff: logs,
  CreateContainerConfigError: 'check the Secrets and ConfigMaps that the server names',
  ErrImagePull: image,
  ImagePullBackOff: image,
  InvalidImageName: 'check spec.image',
  NoSession: 'see the log of the server, and delete its pod to start it again',
  PodNotFound: 'see the events of the StatefulSet of the server',
  PodPending: 'nothing: the pod of the server is being started',
  PodTerminating: 'nothing: the pod that follows is waited for',
  ServerSilent: 'see the log of the server for whether it speaks MCP on its standard streams',
  StreamEnded: 'nothing: the server is attached to again',
}
