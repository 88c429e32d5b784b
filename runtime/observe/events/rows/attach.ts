import type { EventTable } from '../row.ts'

export const attachRows = {
  attach_state: {
    message: ({ attached, again, ended }) => {
      if (attached) return again ? 'attached to the server again' : 'attached to the server'
      return ended === 'proxy_ended'
        ? 'detached from the server: this proxy is shutting down'
        : 'not attached to the server'
    },
    level: ({ attached, ended }) => (attached || ended === 'proxy_ended' ? 'info' : 'warn'),
    isNews: true,
    condition: ({ attached, reason, ended }) => ({
      id: 'attach_state',
      open:
        attached || ended === 'proxy_ended'
          ? undefined
          : { message: `not attached to the server: ${reason}`, fix: fixes[reason] ?? look },
    }),
  },
  server_initialized: {
    message: ({ again }) =>
      again ? 'the server was restarted and initialized' : 'the server is initialized',
    level: 'info',
  },
  server_requests_lost: {
    message: 'requests were lost when the server went down; each failed with an error',
    level: 'warn',
  },
  server_line_too_long: {
    message: 'the server wrote a line that is too long; the line was dropped',
    level: 'warn',
  },
} satisfies Partial<EventTable>

const look = "check the MCPServer's Attached condition and the server's pod"
const image = 'check the image name and imagePullSecrets'
const logs = "check the log of the server's mcp container, with --previous"

const fixes: Readonly<Record<string, string>> = {
  AccessRefused:
    "check the Role and RoleBinding of the proxy's service account: Metacontroller can only grant permissions that it has",
  AnotherProxyAttached:
    'no action needed: this proxy attaches when the other proxy exits or stops responding',
  ApiServerError: "check the API server and the namespace's quotas and admission policies",
  ApiServerUnreachable:
    "allow the proxy's pod to connect to the API server: check egress rules and NetworkPolicies",
  ContainerEnded: logs,
  CrashLoopBackOff: logs,
  CreateContainerConfigError: 'check the Secrets and ConfigMaps that the server references',
  ErrImagePull: image,
  ImagePullBackOff: image,
  InvalidImageName: 'check spec.image',
  NoSession: "check the server's log, and delete its pod to restart it",
  PodNotFound: "check the events of the server's StatefulSet",
  PodPending: "no action needed: the server's pod is starting",
  PodTerminating: 'no action needed: the proxy is waiting for the next pod',
  ServerSilent: "check the server's log, and that it uses MCP on its standard streams",
  StreamEnded: 'no action needed: the proxy reattaches automatically',
}
