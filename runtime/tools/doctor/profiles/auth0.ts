import type { Profile } from './profile.ts'

export const auth0: Profile = {
  id: 'auth0',
  title: 'Auth0',
  host: /\.auth0\.com$/,
  docs: 'https://auth0.com/docs/get-started/applications/dynamic-client-registration',
  quirks: [
    'the issuer ends with a slash',
    'resource has an effect only with the Resource Parameter Compatibility Profile; without the profile and without audience, the token is encrypted (JWE)',
    'dynamic registration is off until it is enabled for the tenant',
  ],
  fixes: {
    'registration.none':
      'Enable dynamic application registration (Settings, Advanced), or create an application of type Native and give its client id to the MCP client.',
    'token.encrypted':
      'Enable the Resource Parameter Compatibility Profile (Settings, Advanced), or send audience with the API’s identifier (gatehouse proxy --remote-auth-provider auth0 does).',
    'token.audience':
      'Create an API whose identifier is the MCP server’s URL, and enable the Resource Parameter Compatibility Profile.',
    'issuer.slash': 'Auth0’s issuer ends with a slash: include the slash in authorization_servers.',
    'client.target': 'Create an API whose identifier is the MCP server’s URL, byte for byte.',
    'refresh.none': 'Allow offline access for the API, and request offline_access.',
  },
}
