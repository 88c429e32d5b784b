import type { Profile } from './profile.ts'

export const salesforce: Profile = {
  id: 'salesforce',
  title: 'Salesforce',
  host: /(?:^|\.)salesforce\.com$/,
  docs: 'https://help.salesforce.com/s/articleView?id=xcloud.external_client_apps.htm',
  quirks: [
    'requires an External Client App with the scopes mcp_api and refresh_token, JWT access tokens and PKCE, but no secret',
    'the MCP server itself must be activated',
  ],
  fixes: {
    'registration.none':
      'Create an External Client App with the scopes mcp_api and refresh_token, enable PKCE and JWT-based access tokens, and disable “Require secret”; then give its consumer key to the MCP client.',
    'pkce.absent':
      'Enable PKCE in the External Client App; for a sandbox, compare the metadata on its own domain.',
    'initialize.token':
      'Activate the MCP server in Setup, and enable JWT-based access tokens in the External Client App.',
  },
}
