/**
 * The flags of `gatehouse proxy` for requests to the target: login, injected headers, token exchange. These rows are
 * part of the table in flags.ts. This file also defines the type of a row.
 *
 * Source: docs/reference/specification/proxy-command.md#outgoing, "Outgoing (remote server) flags" and "Token exchange
 * flags".
 */

import { assertionAlgs } from '../../oauth/index.ts'

/** Type of a flag's value. `list` splits at commas and can be repeated; `repeat` can only be repeated. */
export type FlagKind = 'string' | 'integer' | 'duration' | 'boolean' | 'list' | 'repeat'

export interface FlagRow {
  readonly flag: string
  readonly kind: FlagKind
  /** Placeholder for the value in the help. */
  readonly value?: string
  /** Valid values, for shell completion. */
  readonly values?: readonly string[]
  /** Default as printed in the help. settings.ts applies the default. */
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

const outgoing = 'Outgoing (remote server)'
const exchange = 'Token exchange'

export const remoteFlags = {
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
    help: 'OAuth authorization endpoint, used instead of an issuer',
  },
  remoteAuthTokenUrl: {
    flag: '--remote-auth-token-url',
    kind: 'string',
    value: 'url',
    group: outgoing,
    help: 'OAuth token endpoint, used instead of an issuer',
  },
  remoteAuthClientId: {
    flag: '--remote-auth-client-id',
    kind: 'string',
    value: 'id',
    group: outgoing,
    help: 'OAuth client id; not needed if the server registers clients',
  },
  remoteAuthClientSecret: {
    flag: '--remote-auth-client-secret',
    kind: 'string',
    value: 'secret',
    group: outgoing,
    help: 'OAuth client secret (not for production: visible in process lists)',
  },
  remoteAuthClientSecretFile: {
    flag: '--remote-auth-client-secret-file',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'file with the OAuth client secret',
  },
  remoteAuthGrant: {
    flag: '--remote-auth-grant',
    kind: 'string',
    value: 'grant',
    values: ['authorization_code', 'client_credentials', 'jwt-bearer', 'id-jag'],
    default: 'authorization_code',
    group: outgoing,
    help: 'authorization_code: a user logs in with a browser; client_credentials: the client gets a token for itself; jwt-bearer: a token from the platform, such as a Kubernetes service account token, is the credential; id-jag (alpha): the ID token of a user who signed in elsewhere is exchanged at the identity provider',
    added: true,
  },
  remoteAuthPrivateKeyFile: {
    flag: '--remote-auth-private-key-file',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'file with the client’s private key (PEM or JWK), used instead of a secret for a login without a user; reread for each token request',
    added: true,
  },
  remoteAuthSigningAlg: {
    flag: '--remote-auth-signing-alg',
    kind: 'string',
    value: 'alg',
    values: assertionAlgs,
    group: outgoing,
    help: 'algorithm for the private key: ES256, ES384, RS256, PS256 or EdDSA (default: from the key, RS256 for RSA)',
    added: true,
  },
  remoteAuthAssertionFile: {
    flag: '--remote-auth-assertion-file',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'file with the JWT for the jwt-bearer grant, with the authorization server’s issuer as audience; reread for each token request',
    added: true,
  },
  remoteAuthIdpTokenUrl: {
    flag: '--remote-auth-idp-token-url',
    kind: 'string',
    value: 'url',
    group: outgoing,
    help: 'token endpoint of the identity provider, for the id-jag grant',
    added: true,
  },
  remoteAuthIdpClientId: {
    flag: '--remote-auth-idp-client-id',
    kind: 'string',
    value: 'id',
    group: outgoing,
    help: 'client id at the identity provider, for the id-jag grant: the client that the ID token was issued to',
    added: true,
  },
  remoteAuthIdpClientSecretFile: {
    flag: '--remote-auth-idp-client-secret-file',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'file with the secret of the client at the identity provider; reread for each token request',
    added: true,
  },
  remoteAuthIdpPrivateKeyFile: {
    flag: '--remote-auth-idp-private-key-file',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'file with the private key (PEM or JWK) of the client at the identity provider, instead of a secret; reread for each token request',
    added: true,
  },
  remoteAuthIdTokenFile: {
    flag: '--remote-auth-id-token-file',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'file with the user’s ID token, for the id-jag grant; reread for each token request',
    added: true,
  },
  remoteAuthDpop: {
    flag: '--remote-auth-dpop',
    kind: 'string',
    value: 'mode',
    values: ['auto', 'off', 'required'],
    default: 'auto',
    group: outgoing,
    help: 'when to use tokens that are bound to a key (DPoP), so that a stolen token is useless; auto: if the remote server or its authorization server requires them; required: always; off: never',
    added: true,
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
    help: 'file with the bearer token; reloaded when it changes',
  },
  remoteAuthCallbackPort: {
    flag: '--remote-auth-callback-port',
    kind: 'integer',
    value: 'port',
    default: '8666',
    group: outgoing,
    help: 'port of the local OAuth callback server, or 0 for a free port',
  },
  remoteAuthResource: {
    flag: '--remote-auth-resource',
    kind: 'string',
    value: 'uri',
    group: outgoing,
    help: 'OAuth resource indicator, RFC 8707; empty sends none (default: from the server’s metadata, otherwise the target URI)',
  },
  remoteAuthScopes: {
    flag: '--remote-auth-scopes',
    kind: 'list',
    value: 'scopes',
    group: outgoing,
    help: 'scopes to request (default: openid,profile,email with an issuer, otherwise the scopes that the server requires)',
  },
  remoteAuthScopeParamName: {
    flag: '--remote-auth-scope-param-name',
    kind: 'string',
    value: 'name',
    group: outgoing,
    help: 'query parameter for the scopes, if the provider uses a name other than scope',
  },
  remoteAuthProvider: {
    flag: '--remote-auth-provider',
    kind: 'string',
    value: 'id',
    group: outgoing,
    help: 'identity provider with a nonstandard login: entra, okta, auth0, google, github, atlassian, slack, salesforce, snowflake or cognito',
    added: true,
  },
  remoteAuthSkipBrowser: {
    flag: '--remote-auth-skip-browser',
    kind: 'boolean',
    group: outgoing,
    help: 'print the login URL instead of opening a browser',
  },
  remoteAuthTimeout: {
    flag: '--remote-auth-timeout',
    kind: 'duration',
    value: 'duration',
    default: '30s',
    group: outgoing,
    help: 'time limit for the login, such as 30s, 1m or 2m30s',
  },
  remoteAuthEphemeral: {
    flag: '--remote-auth-ephemeral',
    kind: 'boolean',
    group: outgoing,
    help: 'keep the login and the registration only in memory, not in the state directory',
    added: true,
  },
  remoteCaBundle: {
    flag: '--remote-ca-bundle',
    kind: 'string',
    value: 'file',
    group: outgoing,
    help: 'PEM certificates to trust for the target and its authorization server in addition to the system’s',
    added: true,
  },
  remoteForwardHeaders: {
    flag: '--remote-forward-headers',
    kind: 'repeat',
    value: 'name=value',
    group: outgoing,
    help: 'header to add to requests to the remote server; repeatable',
  },
  remoteForwardHeadersSecret: {
    flag: '--remote-forward-headers-secret',
    kind: 'repeat',
    value: 'name=secret-name',
    group: outgoing,
    help: 'header to add, with its value from the secrets provider; repeatable',
  },
  tokenExchangeUrl: {
    flag: '--token-exchange-url',
    kind: 'string',
    value: 'url',
    group: exchange,
    help: 'token exchange endpoint; enables token exchange',
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
    help: 'file with the client secret for the exchange, instead of the flag',
  },
  tokenExchangeHeaderName: {
    flag: '--token-exchange-header-name',
    kind: 'string',
    value: 'name',
    group: exchange,
    help: 'header for the exchanged token (default: Authorization)',
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
} as const satisfies Record<string, FlagRow>
