/** Providers that speak OAuth 2.0 only. */
import { asks, confidential, oauth2, refused, s256, userInfo } from './parts.ts'
import { type ProviderProfile } from './profile.ts'

export const github: ProviderProfile = {
  id: 'github',
  docs: 'https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens',
  issuerPath: '/login/oauth',
  metadataPaths: ['/.well-known/oauth-authorization-server/login/oauth'],
  metadata: { ...s256, grant_types_supported: ['authorization_code', 'refresh_token'] },
  authorizePath: '/login/oauth/authorize',
  tokenPath: '/login/oauth/access_token',
  clientAuth: 'body',
  isOffline: () => true,
  rotates: true,
  lifeSec: 28_800,
  body: (tokens) => ({ ...tokens, token_type: 'bearer', refresh_token_expires_in: 15_897_600 }),
  prefersForm: true,
  revoked: {
    status: 200,
    body: {
      error: 'bad_refresh_token',
      error_description: 'The refresh token passed is incorrect or expired.',
      error_uri: 'https://docs.github.com',
    },
  },
  revokedText: 'The refresh token passed is incorrect or expired.',
  outage: { status: 502, headers: { 'content-type': 'text/html' }, body: '<title>Unicorn!</title>' },
  user: { id: 583231, login: 'octocat', name: 'Alice', email: null },
  proxy: () => ({ ...confidential, remoteAuthProvider: 'github' }),
  upstream: oauth2(['repo'], (place) => ({ provider: 'github', ...userInfo(place, 'id') })),
  doctor: { warning: 'keys.missing', fix: /GitHub tokens are opaque/, renews: true },
}

export const slack: ProviderProfile = {
  id: 'slack',
  docs: 'https://docs.slack.dev/authentication/using-token-rotation',
  issuerPath: '',
  metadataPaths: [],
  metadata: {},
  authorizePath: '/oauth/v2/authorize',
  tokenPath: '/api/oauth.v2.access',
  clientAuth: 'either',
  scopeParam: 'user_scope',
  isOffline: () => true,
  rotates: true,
  lifeSec: 43_200,
  // The user's tokens of a login are nested. Those of a refresh are not.
  body: ({ scope, ...tokens }, grantType) =>
    grantType === 'authorization_code'
      ? { ok: true, team: { id: 'T1' }, authed_user: { id: 'U1', scope, ...tokens, token_type: 'user' } }
      : { ok: true, team: { id: 'T1' }, scope, ...tokens, token_type: 'user' },
  revoked: { status: 200, body: { ok: false, error: 'invalid_refresh_token' } },
  revokedText: 'invalid_refresh_token',
  outage: { status: 200, body: { ok: false, error: 'internal_error' } },
  user: { ok: true, user_id: 'U1' },
  proxy: ({ authorize, token }) => ({
    ...confidential,
    remoteAuthProvider: 'slack',
    remoteAuthAuthorizeUrl: authorize,
    remoteAuthTokenUrl: token,
    remoteAuthScopes: ['chat:write'],
  }),
  upstream: oauth2(['chat:write'], () => ({
    provider: 'slack',
    tokenResponseMapping: {
      accessTokenPath: 'authed_user.access_token',
      refreshTokenPath: 'authed_user.refresh_token',
      expiresInPath: 'authed_user.expires_in',
      scopePath: 'authed_user.scope',
    },
    identityFromToken: { subjectPath: 'authed_user.id' },
  })),
  doctor: { code: 'issuer-document.missing', fix: /--remote-auth-provider slack/, renews: false },
}

export const atlassian: ProviderProfile = {
  id: 'atlassian',
  docs: 'https://developer.atlassian.com/cloud/oauth/getting-started/refresh-tokens/',
  issuerPath: '',
  metadataPaths: [],
  metadata: {},
  authorizePath: '/authorize',
  tokenPath: '/oauth/token',
  clientAuth: 'body',
  ignoresPkce: true,
  refuses: (query) =>
    query.get('audience') === 'api.atlassian.com'
      ? undefined
      : { error: 'invalid_request', error_description: 'Missing required parameter: audience' },
  isOffline: asks('offline_access'),
  rotates: true,
  lifeSec: 3_600,
  // The documented response has no token_type.
  body: (tokens) => ({ ...tokens }),
  revoked: refused(403, 'invalid_grant', 'Unknown or invalid refresh token.'),
  revokedText: 'Unknown or invalid refresh token.',
  outage: { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' },
  user: { account_id: 'a-1', name: 'Alice', email: 'a@x.test' },
  proxy: ({ authorize, token }) => ({
    ...confidential,
    remoteAuthProvider: 'atlassian',
    remoteAuthAuthorizeUrl: authorize,
    remoteAuthTokenUrl: token,
    remoteAuthScopes: ['read:jira-work', 'offline_access'],
  }),
  upstream: oauth2(['read:jira-work', 'read:me'], (place) => ({
    provider: 'atlassian',
    ...userInfo(place, 'account_id'),
  })),
  doctor: { code: 'issuer-document.missing', fix: /--remote-auth-provider atlassian/, renews: false },
}
