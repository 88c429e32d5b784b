import type { Profile } from './profile.ts'

export const keycloak: Profile = {
  id: 'keycloak',
  title: 'Keycloak',
  path: /\/realms\/[^/]+\/?$/,
  docs: 'https://www.keycloak.org/securing-apps/client-registration',
  quirks: [
    'the issuer follows the host of the request unless hostname is fixed',
    'no audience without a mapper; resource is experimental and only filters audiences',
    'anonymous registration is restricted by the policies trusted hosts and allowed scopes',
    'token exchange: since 26.2, a setting of the client, within one realm',
  ],
  fixes: {
    'issuer.mismatch':
      'Fix the public URL of Keycloak (--hostname, and --proxy-headers behind a proxy): the issuer follows the host of the request.',
    'endpoints.insecure':
      'Set --proxy-headers=xforwarded and --hostname, so that Keycloak uses https in its metadata.',
    'registration.refused':
      'Client registration policies, anonymous access: adjust “Trusted Hosts” and “Allowed Client Scopes”.',
    'registration.redirect':
      'Client registration policies, anonymous access: adjust “Trusted Hosts”, which also checks redirect URIs.',
    'token.audience':
      'Add an Audience mapper with the URL of the MCP server to a client scope, and give that scope to the client.',
    'client.redirect': 'Add the redirect URI under Valid redirect URIs; http://127.0.0.1/* covers loopback.',
    'scopes.unknown':
      'Create the client scopes, and list them under Allowed Client Scopes for anonymous registration.',
  },
  errors: [
    {
      match: /Invalid parameter: redirect_uri/i,
      code: 'client.redirect',
      cause: 'Invalid parameter: redirect_uri',
      fix: 'Add the redirect URI under Valid redirect URIs of the client.',
    },
    {
      match: /Client not found/i,
      code: 'client.unknown',
      cause: 'Client not found',
      fix: 'Create the client in this realm, or delete the registration that the client has stored.',
    },
  ],
}
