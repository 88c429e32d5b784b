import type { Profile } from './profile.ts'

export const slack: Profile = {
  id: 'slack',
  title: 'Slack',
  host: /(?:^|\.)slack\.com$/,
  docs: 'https://docs.slack.dev/authentication/installing-with-oauth',
  quirks: [
    'scopes of users are sent as user_scope',
    'errors come with status 200 and ok: false, the token in authed_user',
    'no dynamic registration; only internal or listed apps, with MCP switched on',
    'token rotation is a setting of the app: 12 hours',
  ],
  fixes: {
    'registration.none':
      'Create an app at api.slack.com, add the redirect URL, switch MCP on, and put authServerConfig of Gatehouse in front (provider slack).',
    'issuer-document.missing':
      'Slack publishes no metadata. Put authServerConfig of Gatehouse in front (provider slack), or sign in with gatehouse proxy --remote-auth-provider slack, --remote-auth-authorize-url and --remote-auth-token-url.',
    'refresh.none': 'Enable token rotation in the app, or use tokens that do not expire.',
  },
  errors: [
    {
      match: /bad_redirect_uri/,
      code: 'client.redirect',
      cause: 'bad_redirect_uri',
      fix: 'Add the redirect URL under OAuth & Permissions of the app.',
    },
  ],
}
