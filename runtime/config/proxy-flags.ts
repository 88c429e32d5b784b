/**
 * The flags of `gatehouse proxy`: one row each, from which the command line, its help, the reference page and the
 * tests are made. Rules between flags are in proxy.ts.
 *
 * Source: spec document 1, "Endpoints". Rows marked `added` are not in the specification.
 */

/** What a row's value is: `list` splits at commas and repeats, `repeat` only repeats. */
export type FlagKind = 'string' | 'integer' | 'duration' | 'boolean' | 'list' | 'repeat'

export interface FlagRow {
  readonly flag: string
  readonly kind: FlagKind
  /** Placeholder in the help. */
  readonly value?: string
  /** As printed in the help; applied in proxy.ts. */
  readonly default?: string
  readonly group:
    | 'Listener and target'
    | 'Incoming (OIDC)'
    | 'Outgoing (remote server)'
    | 'Token exchange'
    | 'Running'
  readonly help: string
  readonly added?: true
}

/** Values as they were given; absent means not given. */
export interface ProxyInput {
  readonly targetUri?: string
  readonly host?: string
  readonly port?: string
  readonly allowedOrigins?: readonly string[]
  readonly resourceUrl?: string
  readonly requestTimeout?: string
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
  readonly metricsPort?: string
  readonly workers?: string
}

const listener = 'Listener and target'
const incoming = 'Incoming (OIDC)'
const outgoing = 'Outgoing (remote server)'
const exchange = 'Token exchange'
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
  remoteAuth: {
    flag: '--remote-auth',
    kind: 'boolean',
    group: outgoing,
    help: 'authenticate to the remote MCP server with OAuth/OIDC',
  },
  remoteAuthIssuer: {
    flag: '--remote-auth-issuer',
    kind: 'string',
    value: 'url',
    group: outgoing,
    help: 'OAuth/OIDC issuer URL of the remote server',
  },
  remoteAuthAuthorizeUrl: {
    flag: '--remote-auth-authorize-url',
    kind: 'string',
    value: 'url',
    group: outgoing,
    help: 'OAuth authorization endpoint, instead of an issuer',
  },
  remoteAuthTokenUrl: {
    flag: '--remote-auth-token-url',
    kind: 'string',
    value: 'url',
    group: outgoing,
    help: 'OAuth token endpoint, instead of an issuer',
  },
  remoteAuthClientId: {
    flag: '--remote-auth-client-id',
    kind: 'string',
    value: 'id',
    group: outgoing,
    help: 'OAuth client id; not needed where clients can register themselves',
  },
  remoteAuthClientSecret: {
    flag: '--remote-auth-client-secret',
    kind: 'string',
    value: 'secret',
    group: outgoing,
    help: 'OAuth client secret (not for production: it shows in process lists)',
  },
  remoteAuthClientSecretFile: {
    flag: '--remote-auth-client-secret-file',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'file that holds the OAuth client secret',
  },
  remoteAuthBearerToken: {
    flag: '--remote-auth-bearer-token',
    kind: 'string',
    value: 'token',
    group: outgoing,
    help: 'fixed bearer token for the remote server, instead of OAuth',
  },
  remoteAuthBearerTokenFile: {
    flag: '--remote-auth-bearer-token-file',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'file that holds the bearer token; a changed file is taken up',
  },
  remoteAuthCallbackPort: {
    flag: '--remote-auth-callback-port',
    kind: 'integer',
    value: 'port',
    default: '8666',
    group: outgoing,
    help: 'port of the local OAuth callback server; 0 takes a free one',
  },
  remoteAuthResource: {
    flag: '--remote-auth-resource',
    kind: 'string',
    value: 'uri',
    group: outgoing,
    help: 'OAuth resource indicator (RFC 8707); default: what the server’s metadata says, else the target URI; empty sends none',
  },
  remoteAuthScopes: {
    flag: '--remote-auth-scopes',
    kind: 'list',
    value: 'scopes',
    group: outgoing,
    help: 'scopes to request (default: openid,profile,email with an issuer, else what the server asks for)',
  },
  remoteAuthScopeParamName: {
    flag: '--remote-auth-scope-param-name',
    kind: 'string',
    value: 'name',
    group: outgoing,
    help: 'query parameter that carries the scopes, for providers that do not call it scope',
  },
  remoteAuthSkipBrowser: {
    flag: '--remote-auth-skip-browser',
    kind: 'boolean',
    group: outgoing,
    help: 'do not open a browser for the login; the URL is printed',
  },
  remoteAuthTimeout: {
    flag: '--remote-auth-timeout',
    kind: 'duration',
    value: 'duration',
    default: '30s',
    group: outgoing,
    help: 'limit of the login, such as 30s, 1m or 2m30s',
  },
  remoteAuthEphemeral: {
    flag: '--remote-auth-ephemeral',
    kind: 'boolean',
    group: outgoing,
    help: 'keep login and registration in memory only, not in the state directory',
    added: true,
  },
  remoteCaBundle: {
    flag: '--remote-ca-bundle',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'PEM certificates trusted for the target and its authorization server beside the system’s',
    added: true,
  },
  remoteForwardHeaders: {
    flag: '--remote-forward-headers',
    kind: 'repeat',
    value: 'name=value',
    group: outgoing,
    help: 'header added to requests to the remote server; repeatable',
  },
  remoteForwardHeadersSecret: {
    flag: '--remote-forward-headers-secret',
    kind: 'repeat',
    value: 'name=secret-name',
    group: outgoing,
    help: 'header whose value comes from the secrets provider; repeatable',
  },
  tokenExchangeUrl: {
    flag: '--token-exchange-url',
    kind: 'string',
    value: 'url',
    group: exchange,
    help: 'token exchange endpoint; giving it enables token exchange',
  },
  tokenExchangeAudience: {
    flag: '--token-exchange-audience',
    kind: 'string',
    value: 'audience',
    group: exchange,
    help: 'target audience of exchanged tokens',
  },
  tokenExchangeClientId: {
    flag: '--token-exchange-client-id',
    kind: 'string',
    value: 'id',
    group: exchange,
    help: 'client id for the exchange',
  },
  tokenExchangeClientSecret: {
    flag: '--token-exchange-client-secret',
    kind: 'string',
    value: 'secret',
    group: exchange,
    help: 'client secret for the exchange',
  },
  tokenExchangeClientSecretFile: {
    flag: '--token-exchange-client-secret-file',
    kind: 'string',
    value: 'file',
    group: exchange,
    help: 'file that holds the client secret for the exchange, instead of the flag',
  },
  tokenExchangeHeaderName: {
    flag: '--token-exchange-header-name',
    kind: 'string',
    value: 'name',
    group: exchange,
    help: 'header that carries the exchanged token (default: it replaces Authorization)',
  },
  tokenExchangeScopes: {
    flag: '--token-exchange-scopes',
    kind: 'list',
    value: 'scopes',
    group: exchange,
    help: 'scopes requested for exchanged tokens',
  },
  tokenExchangeSubjectTokenType: {
    flag: '--token-exchange-subject-token-type',
    kind: 'string',
    value: 'type',
    default: 'access_token',
    group: exchange,
    help: 'access_token, id_token (some security token services require it) or jwt',
  },
  config: {
    flag: '--config',
    kind: 'string',
    value: 'file',
    group: running,
    help: 'configuration file; flags that are given beside it win',
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
