import type { Profile } from './profile.ts'

export const salesforce: Profile = {
  id: 'salesforce',
  title: 'Salesforce',
  host: /(?:^|\.)salesforce\.com$/,
  docs: 'https://help.salesforce.com/s/articleView?id=xcloud.external_client_apps.htm',
  quirks: [
    'an External Client App with the scopes mcp_api and refresh_token, JWT access tokens and PKCE on, secret off',
    'the MCP server itself must be activated',
  ],
  fixes: {
    'registration.none':
      'Create an External Client App: scopes mcp_api and refresh_token, PKCE and JWT-based access tokens on, “Require secret” off; then give its consumer key to the client.',
    'pkce.absent':
      'Turn PKCE on in the External Client App; for a sandbox compare the metadata of its own domain.',
    'initialize.token':
      'Activate the MCP server in Setup, and turn on JWT-based access tokens in the External Client App.',
  },
}
