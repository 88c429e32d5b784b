/** Profiles of providers with few known quirks. */
import type { Profile } from './profile.ts'

export const ping: Profile = {
  id: 'ping',
  title: 'Ping Identity',
  host: /\.pingone\.(?:com|eu|asia|ca|com\.au)$|\.ping-eng\.com$|\.pingidentity\.(?:com|cloud)$/,
  docs: 'https://docs.pingidentity.com/',
  quirks: [
    'PingFederate: aud in the authorization request and resource in the token exchange select the token manager',
  ],
  fixes: {
    'token.audience': 'PingFederate: map an access token manager’s resource URI to the MCP server’s URL.',
    'registration.none':
      'Create a client with the authorization code grant and PKCE, and give its id to the MCP client.',
  },
}

export const zitadel: Profile = {
  id: 'zitadel',
  title: 'Zitadel',
  host: /\.zitadel\.cloud$/,
  docs: 'https://zitadel.com/docs/guides/integrate/login/oidc',
  quirks: [
    'access tokens are opaque until the application’s token type is set to JWT',
    'the audience comes from the scope urn:zitadel:iam:org:project:id:{id}:aud',
    'dynamic registration returns 404 until it is enabled',
  ],
  fixes: {
    'registration.none': 'Create a Native application with PKCE, and give its client id to the MCP client.',
    'token.audience': 'Request the scope urn:zitadel:iam:org:project:id:{project id}:aud.',
  },
}

export const authentik: Profile = {
  id: 'authentik',
  title: 'authentik',
  path: /\/application\/o\/[^/]+\/?$/,
  docs: 'https://docs.goauthentik.io/add-secure-apps/providers/oauth2/',
  quirks: [
    'the issuer is https://{host}/application/o/{slug}/, with a trailing slash; the shared issuer mode breaks the issuer comparison',
    'OpenID Connect Discovery only, no dynamic registration',
    'offline_access requires a scope mapping',
  ],
  fixes: {
    'issuer.mismatch': 'Set the provider’s issuer mode to “Each provider has a different issuer”.',
    'issuer.slash': 'The authentik issuer ends with a slash: include the slash in authorization_servers.',
    'registration.none':
      'Create an OAuth2 provider of type Public with the redirect URI, and give its client id to the MCP client.',
    'refresh.none': 'Add the scope mapping for offline_access to the provider.',
  },
}
