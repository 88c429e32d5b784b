/**
 * The flags of `gatehouse proxy`, one row each. The command line, its help, the reference page and the tests are
 * derived from this table. Rules that involve several flags are in settings.ts.
 *
 * Source: docs/reference/specification/proxy-command.md#command, "Endpoints". Rows with `added` are not in the
 * specification.
 */

import { type FlagRow, remoteFlags } from './flags-remote.ts'

export type { FlagRow } from './flags-remote.ts'

/** Flag values as given. A flag that is not set is absent. */
export interface ProxyInput {
  readonly targetUri?: string
  readonly host?: string
  readonly port?: string
  readonly tlsCertFile?: string
  readonly tlsKeyFile?: string
  readonly tlsClientCaFile?: string
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
  readonly remoteAuthGrant?: string
  readonly remoteAuthPrivateKeyFile?: string
  readonly remoteAuthSigningAlg?: string
  readonly remoteAuthAssertionFile?: string
  readonly remoteAuthIdpTokenUrl?: string
  readonly remoteAuthIdpClientId?: string
  readonly remoteAuthIdpClientSecretFile?: string
  readonly remoteAuthIdpPrivateKeyFile?: string
  readonly remoteAuthIdTokenFile?: string
  readonly remoteAuthDpop?: string
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
    help: 'IP address or host name to listen on',
  },
  port: {
    flag: '--port',
    kind: 'integer',
    value: 'port',
    default: '0',
    group: listener,
    help: 'port to listen on, or 0 for a free port',
  },
  tlsCertFile: {
    flag: '--tls-cert-file',
    kind: 'string',
    value: 'file',
    group: listener,
    help: 'serve HTTPS with this certificate chain, PEM; reloaded when it changes',
    added: true,
  },
  tlsKeyFile: {
    flag: '--tls-key-file',
    kind: 'string',
    value: 'file',
    group: listener,
    help: 'private key of the certificate, PEM, without a passphrase',
    added: true,
  },
  tlsClientCaFile: {
    flag: '--tls-client-ca-file',
    kind: 'string',
    value: 'file',
    group: listener,
    help: 'ask clients for certificates issued by these authorities (PEM), for tokens that are bound to a certificate; reloaded when the file changes',
    added: true,
  },
  allowedOrigins: {
    flag: '--allowed-origins',
    kind: 'repeat',
    value: 'origin',
    group: listener,
    help: 'allowed value of the Origin header; repeatable. Default on loopback addresses: the proxy’s own origin. Recommended on public addresses',
  },
  resourceUrl: {
    flag: '--resource-url',
    kind: 'string',
    value: 'url',
    group: listener,
    help: 'URL of this proxy in its protected-resource document, RFC 9728 (default: http://<host>:<port>/mcp)',
  },
  requestTimeout: {
    flag: '--request-timeout',
    kind: 'duration',
    value: 'duration',
    default: '60s',
    group: listener,
    help: 'time limit for the target’s response headers, except for event streams; 0s means no limit',
    added: true,
  },
  stateless: {
    flag: '--stateless',
    kind: 'boolean',
    group: listener,
    help: 'the target accepts only POST: reject GET and DELETE with 405',
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
    help: 'expected audience of incoming tokens (default: the resource URL)',
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
    help: 'OIDC client secret for introspection',
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
    help: 'URL of the issuer’s key set (JWKS)',
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
    help: 'PEM certificates to trust for the issuer in addition to the system’s',
    added: true,
  },
  oidcAllowPrivateIp: {
    flag: '--oidc-allow-private-ip',
    kind: 'boolean',
    group: incoming,
    help: 'allow an issuer with a private address',
    added: true,
  },
  oidcInsecureAllowHttp: {
    flag: '--oidc-insecure-allow-http',
    kind: 'boolean',
    group: incoming,
    help: 'allow plain http for an issuer that is not on loopback',
    added: true,
  },
  passAuthorization: {
    flag: '--pass-authorization',
    kind: 'boolean',
    group: incoming,
    help: 'forward the client’s Authorization header after validating it',
    added: true,
  },
  ...remoteFlags,
  config: {
    flag: '--config',
    kind: 'string',
    value: 'file',
    group: running,
    help: 'configuration file; flags take precedence',
    added: true,
  },
  toolLock: {
    flag: '--tool-lock',
    kind: 'string',
    value: 'file',
    group: running,
    help: 'file with the target’s MCPToolLock: clients get only approved tools',
    added: true,
  },
  pinFirst: {
    flag: '--pin-first',
    kind: 'string',
    value: 'file',
    group: running,
    help: 'trust on first use: like --tool-lock, but if the file does not exist, approve the target’s initial definitions and write them to the file',
    added: true,
  },
  webhookConfig: {
    flag: '--webhook-config',
    kind: 'repeat',
    value: 'file',
    group: running,
    help: 'file with webhooks for calls and their results, YAML or JSON; repeatable, later files replace webhooks with the same name',
    added: true,
  },
  metricsPort: {
    flag: '--metrics-port',
    kind: 'integer',
    value: 'port',
    group: running,
    help: 'serve Prometheus metrics on this port of the listening address (default: off)',
    added: true,
  },
  workers: {
    flag: '--workers',
    kind: 'integer',
    value: 'count',
    default: '1',
    group: running,
    help: 'number of processes that share the port, to use several cores',
    added: true,
  },
} as const satisfies Record<keyof ProxyInput, FlagRow>

/** Returns the flag that sets a value, for messages. */
export function flagOf(key: keyof ProxyInput): string {
  return proxyFlags[key].flag
}
