/**
 * The flags of `gatehouse proxy`: one row each, from which the command line, its help, the reference page and the
 * tests are made. Rules between flags are in proxy.ts.
 *
 * Source: docs/specification/proxy-command.md#command, "Endpoints". Rows marked `added` are not in the specification.
 */

import { type FlagRow, remoteFlags } from './flags-remote.ts'

export type { FlagRow } from './flags-remote.ts'

/** Values as they were given; absent means not given. */
export interface ProxyInput {
  readonly targetUri?: string
  readonly host?: string
  readonly port?: string
  readonly tlsCertFile?: string
  readonly tlsKeyFile?: string
  readonly allowedOrigins?: readonly string[]
  readonly resourceUrl?: string
  readonly requestTimeout?: string
  readonly stateless?: boolean
  readonly oidcIssuer?: string
  readonly oidcAudience?: string
  readonly oidcClientId?: string
  readonly oidcClientSecret?: string
  readonly oidcIntrospectionUrl?: string
  readonly oidcJwksUrl?: string
  readonly oidcScopes?: readonly string[]
  readonly oidcCaBundle?: string
  readonly oidcAllowPrivateIp?: boolean
  readonly oidcInsecureAllowHttp?: boolean
  readonly passAuthorization?: boolean
  readonly remoteAuth?: boolean
  readonly remoteAuthIssuer?: string
  readonly remoteAuthAuthorizeUrl?: string
  readonly remoteAuthTokenUrl?: string
  readonly remoteAuthClientId?: string
  readonly remoteAuthClientSecret?: string
  readonly remoteAuthClientSecretFile?: string
  readonly remoteAuthBearerToken?: string
  readonly remoteAuthBearerTokenFile?: string
  readonly remoteAuthCallbackPort?: string
  readonly remoteAuthResource?: string
  readonly remoteAuthScopes?: readonly string[]
  readonly remoteAuthScopeParamName?: string
  readonly remoteAuthProvider?: string
  readonly remoteAuthSkipBrowser?: boolean
  readonly remoteAuthTimeout?: string
  readonly remoteAuthEphemeral?: boolean
  readonly remoteCaBundle?: string
  readonly remoteForwardHeaders?: readonly string[]
  readonly remoteForwardHeadersSecret?: readonly string[]
  readonly tokenExchangeUrl?: string
  readonly tokenExchangeAudience?: string
  readonly tokenExchangeClientId?: string
  readonly tokenExchangeClientSecret?: string
  readonly tokenExchangeClientSecretFile?: string
  readonly tokenExchangeHeaderName?: string
  readonly tokenExchangeScopes?: readonly string[]
  readonly tokenExchangeSubjectTokenType?: string
  readonly config?: string
  readonly toolLock?: string
  readonly pinFirst?: string
  readonly webhookConfig?: readonly string[]
  readonly metricsPort?: string
  readonly workers?: string
}

const listener = 'Listener and target'
const incoming = 'Incoming (OIDC)'
const running = 'Running'

export const proxyFlags = {
  targetUri: {
    flag: '--target-uri',
    kind: 'string',
    value: 'uri',
    group: listener,
    help: 'URI of the target MCP server, without a path (required)',
  },
  host: {
    flag: '--host',
    kind: 'string',
    value: 'host',
    default: '127.0.0.1',
    group: listener,
    help: 'IP address or name the proxy listens on',
  },
  port: {
    flag: '--port',
    kind: 'integer',
    value: 'port',
    default: '0',
    group: listener,
    help: 'port the proxy listens on; 0 lets the system choose a free one',
  },
  tlsCertFile: {
    flag: '--tls-cert-file',
    kind: 'string',
    value: 'file',
    group: listener,
    help: 'serve HTTPS with this certificate, PEM, followed by those of its authorities; reloaded when it changes',
    added: true,
  },
  tlsKeyFile: {
    flag: '--tls-key-file',
    kind: 'string',
    value: 'file',
    group: listener,
    help: 'its private key, PEM, without a passphrase',
    added: true,
  },
  allowedOrigins: {
    flag: '--allowed-origins',
    kind: 'repeat',
    value: 'origin',
    group: listener,
    help: 'exact value allowed in the Origin header; repeatable. A loopback bind derives its own list; recommended for public binds',
  },
  resourceUrl: {
    flag: '--resource-url',
    kind: 'string',
    value: 'url',
    group: listener,
    help: 'this proxy’s URL in its protected-resource document (RFC 9728); default: http://<host>:<port>/mcp',
  },
  requestTimeout: {
    flag: '--request-timeout',
    kind: 'duration',
    value: 'duration',
    default: '60s',
    group: listener,
    help: 'how long the target may take until its response headers, but for event streams; 0s waits for ever',
    added: true,
  },
  stateless: {
    flag: '--stateless',
    kind: 'boolean',
    group: listener,
    help: 'the target takes POST only: GET and DELETE get 405 here and do not reach it',
    added: true,
  },
  oidcIssuer: {
    flag: '--oidc-issuer',
    kind: 'string',
    value: 'url',
    group: incoming,
    help: 'OIDC issuer URL',
  },
  oidcAudience: {
    flag: '--oidc-audience',
    kind: 'string',
    value: 'audience',
    group: incoming,
    help: 'expected audience of incoming tokens; default: the resource URL',
  },
  oidcClientId: {
    flag: '--oidc-client-id',
    kind: 'string',
    value: 'id',
    group: incoming,
    help: 'OIDC client id',
  },
  oidcClientSecret: {
    flag: '--oidc-client-secret',
    kind: 'string',
    value: 'secret',
    group: incoming,
    help: 'OIDC client secret, for introspection (optional)',
  },
  oidcIntrospectionUrl: {
    flag: '--oidc-introspection-url',
    kind: 'string',
    value: 'url',
    group: incoming,
    help: 'token introspection endpoint',
  },
  oidcJwksUrl: {
    flag: '--oidc-jwks-url',
    kind: 'string',
    value: 'url',
    group: incoming,
    help: 'URL the key set is fetched from',
  },
  oidcScopes: {
    flag: '--oidc-scopes',
    kind: 'list',
    value: 'scopes',
    default: 'openid',
    group: incoming,
    help: 'scopes advertised in the protected-resource document (RFC 9728)',
  },
  oidcCaBundle: {
    flag: '--oidc-ca-bundle',
    kind: 'string',
    value: 'file',
    group: incoming,
    help: 'PEM certificates trusted for the issuer beside the system’s',
    added: true,
  },
  oidcAllowPrivateIp: {
    flag: '--oidc-allow-private-ip',
    kind: 'boolean',
    group: incoming,
    help: 'the issuer may have a private address',
    added: true,
  },
  oidcInsecureAllowHttp: {
    flag: '--oidc-insecure-allow-http',
    kind: 'boolean',
    group: incoming,
    help: 'the issuer may use plain http on other hosts than loopback',
    added: true,
  },
  passAuthorization: {
    flag: '--pass-authorization',
    kind: 'boolean',
    group: incoming,
    help: 'forward the client’s Authorization header although this proxy has validated it',
    added: true,
  },
  ...remoteFlags,
  config: {
    flag: '--config',
    kind: 'string',
    value: 'file',
    group: running,
    help: 'configuration file; flags that are given beside it win',
    added: true,
  },
  toolLock: {
    flag: '--tool-lock',
    kind: 'string',
    value: 'file',
    group: running,
    help: 'MCPToolLock of the target: clients get the tools that were approved, and no others',
    added: true,
  },
  pinFirst: {
    flag: '--pin-first',
    kind: 'string',
    value: 'file',
    group: running,
    help: 'trust on first use: as --tool-lock, and where the file is not there, what the target is first seen to offer is approved and written to it',
    added: true,
  },
  webhookConfig: {
    flag: '--webhook-config',
    kind: 'repeat',
    value: 'file',
    group: running,
    help: 'webhooks that are asked about calls and their results, YAML or JSON; repeatable: a webhook of the same name in a later file replaces the former',
    added: true,
  },
  metricsPort: {
    flag: '--metrics-port',
    kind: 'integer',
    value: 'port',
    group: running,
    help: 'serve Prometheus metrics on this port of the listening address; off by default',
    added: true,
  },
  workers: {
    flag: '--workers',
    kind: 'integer',
    value: 'count',
    default: '1',
    group: running,
    help: 'processes that share the port, for more than one core',
    added: true,
  },
} as const satisfies Record<keyof ProxyInput, FlagRow>

/** The flag of a value, for messages. */
export function flagOf(key: keyof ProxyInput): string {
  return proxyFlags[key].flag
}
