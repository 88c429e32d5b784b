/**
 * The sections of the specification, in the order of its pages: the heading and one sentence on what the rows are about.
 * The rows themselves are in spec1.ts, spec2*.ts and spec3*.ts.
 */
import type { Requirement } from './table.ts'

export interface Page {
  readonly doc: Requirement['doc']
  /** File name under docs/reference/specification/. */
  readonly file: string
  readonly title: string
  readonly about: string
  /** Section key of the rows -> heading and introduction. */
  readonly sections: Readonly<Record<string, readonly [heading: string, about: string]>>
}

export const pages: readonly Page[] = [
  {
    doc: 1,
    file: 'proxy-command.md',
    title: 'The proxy command',
    about: '`gatehouse proxy` runs a transparent HTTP proxy in front of one MCP server.',
    sections: {
      service: ['What it does', 'What the command can do, and what it leaves alone.'],
      scenarios: ['Authentication scenarios', 'Which of its two sides is authenticated.'],
      rules: ['Rules', 'How settings for the remote server work together.'],
      command: ['Command form', 'Arguments, subcommands and inherited flags.'],
      listener: ['Listener and target flags', 'Where the proxy listens and where it forwards to.'],
      incoming: ['Incoming flags', 'How the proxy validates the tokens of its clients.'],
      outgoing: ['Outgoing flags', 'How the proxy authenticates to the remote server.'],
      'token exchange': ['Token exchange flags', "How the client's token becomes one for the remote server."],
      authentication: ['Authentication', 'What is validated, discovered and sent on each side.'],
      errors: ['Errors and warnings', 'What the command reports about a setting that is legal but risky.'],
      limits: ['Limits', 'Default values that bound the login.'],
    },
  },
  {
    doc: 2,
    file: 'external-auth.md',
    title: 'External authentication and the authorization server',
    about:
      'MCPExternalAuthConfig describes how a server authenticates to its backend, or configures an embedded OAuth authorization server.',
    sections: {
      service: ['The kind', 'API group, names and the types of authentication.'],
      'shared shapes': ['Shared shapes', 'Shapes that several fields use.'],
      spec: ['spec', 'The type of authentication, and the object with its settings.'],
      cloudSts: ['spec.cloudSts', 'Temporary cloud credentials for the caller, by role.'],
      bearerToken: ['spec.bearerToken', 'A fixed token.'],
      headerInjection: ['spec.headerInjection', 'One header whose value is in a Secret.'],
      upstreamInject: ['spec.upstreamInject', "The caller's token from an upstream provider."],
      tokenExchange: ['spec.tokenExchange', 'Token exchange as defined by RFC 8693.'],
      obo: ['spec.obo', 'On-behalf-of exchange with a directory provider.'],
      status: ['status', 'What the hooks report.'],
      references: ['References', 'The kinds that may reference this kind, and how.'],
      embeddedAuthServer: ['spec.embeddedAuthServer', 'The embedded authorization server.'],
      cimd: ['spec.embeddedAuthServer.cimd', 'Clients that a metadata document describes.'],
      tokenLifespans: ['spec.embeddedAuthServer.tokenLifespans', 'How long codes and tokens are valid.'],
      storage: ['spec.embeddedAuthServer.storage', 'Where the authorization server keeps its state.'],
      upstreamProviders: [
        'spec.embeddedAuthServer.upstreamProviders',
        'The identity providers that users sign in with.',
      ],
      oidcConfig: ['upstreamProviders[].oidcConfig', 'A provider that supports OpenID Connect.'],
      oauth2Config: ['upstreamProviders[].oauth2Config', 'A provider that supports only OAuth 2.0.'],
      dcrConfig: ['oauth2Config.dcrConfig', 'Registration with the provider instead of fixed credentials.'],
      identityFromToken: [
        'oauth2Config.identityFromToken',
        'The user’s identity, read from the token response.',
      ],
      tokenResponseMapping: [
        'oauth2Config.tokenResponseMapping',
        'Token responses with members in non-standard places.',
      ],
      userInfo: ['oauth2Config.userInfo', 'The user’s identity, read from an endpoint.'],
      states: ['States', 'Conditions and their values.'],
      endpoints: ['Endpoints', 'Paths of the authorization server.'],
      authentication: ['Authentication', 'What each type sends.'],
      errors: ['Errors', 'What is rejected, where, and for which reason.'],
      limits: ['Limits', 'Bounds and defaults of fields.'],
      versioning: ['Versioning', 'API version and the order of keys during rotation.'],
    },
  },
  {
    doc: 3,
    file: 'virtual-server.md',
    title: 'The virtual MCP server',
    about: 'The kind VirtualMCPServer presents the servers of a group as one MCP server.',
    sections: {
      service: ['The kind', 'API group, names and what the server does.'],
      spec: ['spec', 'Fields of the resource outside spec.config.'],
      incomingAuth: ['spec.incomingAuth', 'Who may call.'],
      authzConfig: ['spec.incomingAuth.authzConfig', 'Where the policies come from.'],
      outgoingAuth: ['spec.outgoingAuth', 'How backends get their credentials.'],
      sessionStorage: ['spec.sessionStorage', 'Where sessions are stored.'],
      status: ['status', 'What the hooks report.'],
      references: ['References', 'Other kinds that the resource refers to.'],
      config: ['spec.config', 'The configuration of the running server.'],
      aggregation: ['spec.config.aggregation', 'Names, conflicts, filters and overrides of tools.'],
      audit: ['spec.config.audit', 'The audit log.'],
      backends: ['spec.config.backends', 'Backends that are named directly.'],
      codeMode: ['spec.config.codeMode', 'Scripts over tools.'],
      compositeTools: ['spec.config.compositeTools', 'Workflows that are offered as tools.'],
      steps: ['spec.config.compositeTools[].steps', 'The steps of a workflow.'],
      optimizer: ['spec.config.optimizer', 'Tool search.'],
      'config.incomingAuth': ['spec.config.incomingAuth', 'The runtime form of incoming authentication.'],
      'config.outgoingAuth': ['spec.config.outgoingAuth', 'The runtime form of outgoing authentication.'],
      operational: ['spec.config.operational', 'Timeouts, health checks and failure handling.'],
      rateLimiting: ['spec.config.rateLimiting', 'Token buckets per server, user and tool.'],
      telemetry: ['spec.config.telemetry', 'Metrics and traces.'],
      states: ['States', 'Health of backends and what follows from it.'],
      endpoints: ['Endpoints', 'What clients and operators can call.'],
      authentication: ['Authentication', 'Order and rules of authentication and authorization.'],
      events: ['Events', 'Kubernetes Events that the hooks write.'],
      errors: ['Errors', 'What is rejected, where, and for which reason.'],
      limits: ['Limits', 'Bounds and defaults of fields.'],
      versioning: ['Versioning', 'API version and deprecated fields.'],
    },
  },
]
