import type { Profile } from './profile.ts'

export const okta: Profile = {
  id: 'okta',
  title: 'Okta',
  host: /\.(?:okta|oktapreview|okta-emea|okta-gov)\.com$/,
  docs: 'https://developer.okta.com/docs/concepts/auth-servers/',
  quirks: [
    'tokens from the org server are for Okta’s own APIs: use a custom server, https://{domain}/oauth2/{id}',
    'the custom server’s metadata URL extends its issuer path; the domain root belongs to another authorization server',
    'dynamic registration requires an API token',
    'one audience per custom server',
    'offline_access and the Refresh Token grant must both be allowed',
  ],
  fixes: {
    'registration.none':
      'Create an OIDC Native Application with the Authorization Code and Refresh Token grants, and give its client id to the MCP client.',
    'registration.token':
      'Okta requires an API token for registration: create a Native Application manually.',
    'issuer.mismatch':
      'Use the custom authorization server’s issuer, https://{domain}/oauth2/{id}: the root of the domain is the org server.',
    'issuer-document.root':
      'Use the custom authorization server’s issuer, https://{domain}/oauth2/{id}: the root of the domain is the org server.',
    'token.audience':
      'Set the custom authorization server’s audience to the MCP server’s URL (one audience per server).',
    'refresh.none':
      'Allow the Refresh Token grant in the application and the offline_access scope in an access policy.',
    'client.scope': 'Add an access policy with a rule for this client and all of its scopes.',
  },
  errors: [
    {
      match: /policy evaluation failed/i,
      code: 'client.scope',
      cause: 'policy evaluation failed',
      fix: 'No access policy rule covers this client and all of its scopes: add one to the custom authorization server.',
    },
  ],
}
