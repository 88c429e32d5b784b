/** Providers that speak OpenID Connect. */
import { asks, confidential, oidc, openid, refused, s256 } from './parts.ts'
import { clientId, type ProviderProfile } from './profile.ts'

export const entra: ProviderProfile = {
  id: 'entra',
  docs: 'https://learn.microsoft.com/entra/identity-platform/v2-oauth2-auth-code-flow',
  issuerPath: '/11111111-2222-3333-4444-555555555555/v2.0',
  metadataPaths: ['/11111111-2222-3333-4444-555555555555/v2.0/.well-known/openid-configuration'],
  templates: { '/common/v2.0/.well-known/openid-configuration': '/{tenantid}/v2.0' },
  // PKCE with S256 works, but the metadata does not list it.
  metadata: {
    ...openid,
    token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
  },
  authorizePath: '/11111111-2222-3333-4444-555555555555/oauth2/v2.0/authorize',
  tokenPath: '/11111111-2222-3333-4444-555555555555/oauth2/v2.0/token',
  clientAuth: 'either',
  refuses: (query) =>
    query.has('resource')
      ? {
          error: 'invalid_target',
          error_description: "AADSTS9010010: The resource parameter doesn't match the requested scopes.",
        }
      : undefined,
  isOffline: asks('offline_access'),
  rotates: true,
  lifeSec: 4_200,
  accessClaims: ({ issuer }) => ({
    iss: issuer,
    aud: 'api-client-id',
    ver: '2.0',
    scp: 'mcp.read',
    oid: 'o-1',
  }),
  idClaims: {
    oid: 'o-1',
    tid: '11111111-2222-3333-4444-555555555555',
    name: 'Alice',
    preferred_username: 'a@x.test',
  },
  revoked: {
    status: 400,
    body: {
      error: 'invalid_grant',
      error_description:
        'AADSTS50173: The provided grant has expired due to it being revoked.\r\nTrace ID: t-1',
      error_codes: [50173],
      suberror: 'bad_token',
    },
  },
  revokedText: 'AADSTS50173',
  outage: {
    status: 503,
    body: { error: 'temporarily_unavailable', error_description: 'AADSTS90033: A transient error occurred.' },
  },
  proxy: () => ({
    ...confidential,
    remoteAuthProvider: 'entra',
    remoteAuthScopes: ['api://mcp/mcp.read', 'offline_access'],
  }),
  upstream: oidc(['openid', 'profile'], { provider: 'entra' }),
  doctor: { code: 'pkce.absent', fix: /--remote-auth-provider entra/, renews: false },
}

export const okta: ProviderProfile = {
  id: 'okta',
  docs: 'https://developer.okta.com/docs/guides/refresh-tokens/main/',
  issuerPath: '/oauth2/aus1',
  // The root of the host is the organization's own server, which has another issuer.
  metadataPaths: [
    '/oauth2/aus1/.well-known/openid-configuration',
    '/oauth2/aus1/.well-known/oauth-authorization-server',
  ],
  metadata: {
    ...openid,
    ...s256,
    scopes_supported: ['openid', 'offline_access', 'read'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
  },
  authorizePath: '/oauth2/aus1/v1/authorize',
  tokenPath: '/oauth2/aus1/v1/token',
  clientAuth: 'basic',
  isOffline: asks('offline_access'),
  rotates: true,
  lifeSec: 3_600,
  accessClaims: ({ issuer }) => ({ iss: issuer, aud: 'api://default', scp: ['read'], cid: clientId }),
  idClaims: { name: 'Alice', email: 'a@x.test', email_verified: true },
  revoked: refused(400, 'invalid_grant', 'The refresh token is invalid or expired.'),
  revokedText: 'The refresh token is invalid or expired.',
  outage: {
    status: 429,
    headers: { 'retry-after': '7' },
    body: { errorCode: 'E0000047', errorSummary: 'API call exceeded rate limit' },
  },
  proxy: () => ({ ...confidential, remoteAuthProvider: 'okta' }),
  upstream: oidc(['openid', 'email'], { provider: 'okta' }),
  doctor: { warning: 'token.audience', fix: /one audience per server/, renews: true },
}

export const auth0: ProviderProfile = {
  id: 'auth0',
  docs: 'https://auth0.com/docs/secure/tokens/refresh-tokens/refresh-token-rotation',
  issuerPath: '/',
  metadataPaths: ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'],
  metadata: {
    ...openid,
    ...s256,
    scopes_supported: ['openid', 'offline_access', 'read'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
  },
  authorizePath: '/authorize',
  tokenPath: '/oauth/token',
  clientAuth: 'either',
  isOffline: asks('offline_access'),
  rotates: true,
  lifeSec: 86_400,
  // Without `audience` the access token is encrypted (five parts) and useless for the API.
  accessClaims: ({ issuer }, query) =>
    query.has('audience')
      ? { iss: issuer, aud: [query.get('audience')], azp: clientId, scope: 'read' }
      : { enc: 'A256GCM' },
  idClaims: { name: 'Alice', email: 'a@x.test', email_verified: true },
  revoked: refused(403, 'invalid_grant', 'Unknown or invalid refresh token.'),
  revokedText: 'Unknown or invalid refresh token.',
  outage: {
    status: 429,
    body: { error: 'too_many_requests', error_description: 'Global limit has been reached' },
  },
  proxy: () => ({ ...confidential, remoteAuthProvider: 'auth0' }),
  upstream: oidc(['openid', 'email'], { provider: 'auth0' }),
  doctor: { code: 'token.encrypted', fix: /Resource Parameter Compatibility Profile/, renews: true },
}

export const google: ProviderProfile = {
  id: 'google',
  docs: 'https://developers.google.com/identity/protocols/oauth2/web-server',
  issuerPath: '',
  metadataPaths: ['/.well-known/openid-configuration'],
  metadata: {
    ...openid,
    code_challenge_methods_supported: ['plain', 'S256'],
    token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
  },
  authorizePath: '/o/oauth2/v2/auth',
  tokenPath: '/token',
  hasOtherHost: true,
  clientAuth: 'either',
  isOffline: (query) => query.get('access_type') === 'offline' && query.get('prompt') === 'consent',
  rotates: false,
  lifeSec: 3_599,
  idClaims: { name: 'Alice', email: 'a@x.test', email_verified: true },
  revoked: refused(400, 'invalid_grant', 'Token has been expired or revoked.'),
  revokedText: 'Token has been expired or revoked.',
  outage: { status: 500, body: { error: 'internal_failure', error_description: 'Backend error' } },
  proxy: () => ({ ...confidential, remoteAuthProvider: 'google' }),
  upstream: oidc(['openid', 'email'], { provider: 'google' }),
  doctor: {
    warning: 'refresh.not-issued',
    fix: /Send access_type=offline and prompt=consent/,
    renews: false,
  },
}

export const keycloak: ProviderProfile = {
  id: 'keycloak',
  docs: 'https://www.keycloak.org/docs/latest/server_admin/#_timeouts',
  issuerPath: '/realms/acme',
  metadataPaths: ['/realms/acme/.well-known/openid-configuration'],
  metadata: {
    ...openid,
    code_challenge_methods_supported: ['plain', 'S256'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    scopes_supported: ['openid', 'offline_access', 'read'],
  },
  authorizePath: '/realms/acme/protocol/openid-connect/auth',
  tokenPath: '/realms/acme/protocol/openid-connect/token',
  clientAuth: 'none',
  isOffline: () => true,
  rotates: true,
  lifeSec: 300,
  accessClaims: ({ issuer }) => ({
    iss: issuer,
    aud: 'account',
    azp: clientId,
    scope: 'openid read',
    typ: 'Bearer',
  }),
  idClaims: { azp: clientId, name: 'Alice', email: 'a@x.test', email_verified: false },
  revoked: refused(400, 'invalid_grant', 'Session not active'),
  revokedText: 'Session not active',
  outage: { status: 503, headers: { 'content-type': 'text/html' }, body: '<h1>Service Unavailable</h1>' },
  proxy: () => ({}),
  upstream: oidc(['openid', 'offline_access'], { clientSecret: undefined }),
  doctor: { warning: 'token.audience', fix: /Add an Audience mapper/, renews: true },
}

export const cognito: ProviderProfile = {
  id: 'cognito',
  docs: 'https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html',
  issuerPath: '/eu-west-1_pool',
  metadataPaths: ['/eu-west-1_pool/.well-known/openid-configuration'],
  // PKCE with S256 works, but the metadata does not list it.
  metadata: {
    ...openid,
    scopes_supported: ['openid', 'email', 'phone', 'profile'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  },
  authorizePath: '/oauth2/authorize',
  tokenPath: '/oauth2/token',
  hasOtherHost: true,
  clientAuth: 'either',
  refuses: (query) =>
    asks('offline_access')(query)
      ? { error: 'invalid_request', error_description: 'invalid_scope' }
      : undefined,
  isOffline: () => true,
  rotates: false,
  lifeSec: 3_600,
  accessClaims: ({ issuer }) => ({
    iss: issuer,
    client_id: clientId,
    token_use: 'access',
    scope: 'openid email',
  }),
  idClaims: { token_use: 'id', 'cognito:username': 'alice', email: 'a@x.test', email_verified: true },
  // Neither a description nor any other text.
  revoked: { status: 400, body: { error: 'invalid_grant' } },
  revokedText: 'invalid_grant',
  outage: { status: 503, body: '' },
  proxy: () => ({ ...confidential, remoteAuthProvider: 'cognito', remoteAuthScopes: ['openid', 'email'] }),
  upstream: oidc(['openid', 'offline_access', 'email'], { provider: 'cognito' }),
  doctor: {
    code: 'pkce.absent',
    warning: 'token.audience',
    fix: /--remote-auth-provider cognito/,
    renews: true,
  },
}
