import type { Profile } from './profile.ts'

export const keycloak: Profile = {
  id: 'keycloak',
  title: 'Keycloak',
  path: /\/realms\/[^/]+\/?$/,
  docs: 'https://www.keycloak.org/securing-apps/client-registration',
  quirks: [
    'the issuer follows the request’s host name unless hostname is set',
    'no audience without a mapper; resource is experimental and only filters audiences',
    'the “Trusted Hosts” and “Allowed Client Scopes” policies restrict anonymous registration',
    'token exchange (since 26.2) is a client setting and works within one realm',
  ],
  fixes: {
    'issuer.mismatch':
      'Set Keycloak’s public URL (--hostname, and --proxy-headers behind a proxy): the issuer follows the request’s host name.',
    'endpoints.insecure':
      'Set --proxy-headers=xforwarded and --hostname, so that Keycloak uses https in its metadata.',
    'registration.refused':
      'In the client registration policies for anonymous access, adjust “Trusted Hosts” and “Allowed Client Scopes”.',
    'registration.redirect':
      'In the client registration policies for anonymous access, adjust “Trusted Hosts”, which also checks redirect URIs.',
    'token.audience':
      'Add an Audience mapper with the MCP server’s URL to a client scope, and assign that scope to the client.',
    'client.redirect':
      'Add the redirect URI under Valid redirect URIs; http://127.0.0.1/* covers loopback redirects.',
    'scopes.unknown':
      'Create the client scopes, and list them under Allowed Client Scopes for anonymous registration.',
  },
  errors: [
    {
      match: /Invalid parameter: redirect_uri/i,
      code: 'client.redirect',
      cause: 'Invalid parameter: redirect_uri',
      fix: 'Add the redirect URI under the client’s Valid redirect URIs.',
    },
    {
      match: /Client not found/i,
      code: 'client.unknown',
      cause: 'Client not found',
      fix: 'Create the client in this realm, or delete the registration that the client has stored.',
    },
  ],
}
