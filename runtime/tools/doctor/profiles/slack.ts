import type { Profile } from './profile.ts'

export const slack: Profile = {
  id: 'slack',
  title: 'Slack',
  host: /(?:^|\.)slack\.com$/,
  docs: 'https://docs.slack.dev/authentication/installing-with-oauth',
  quirks: [
    'user scopes are sent as user_scope',
    'error responses have status 200 and ok: false; the token is in authed_user',
    'no dynamic registration; only internal or listed apps can connect, and MCP must be enabled',
    'if token rotation is enabled in the app, tokens expire after 12 hours',
  ],
  fixes: {
    'registration.none':
      'Create an app at api.slack.com, add the redirect URL, enable MCP, and configure Gatehouse’s authServerConfig with provider slack.',
    'issuer-document.missing':
      'Slack publishes no metadata. Configure authServerConfig with the provider slack, or log in with gatehouse proxy and --remote-auth-provider slack, --remote-auth-authorize-url and --remote-auth-token-url.',
    'refresh.none': 'Enable token rotation in the app, or use tokens that do not expire.',
  },
  errors: [
    {
      match: /bad_redirect_uri/,
      code: 'client.redirect',
      cause: 'bad_redirect_uri',
      fix: 'Add the redirect URL in the app’s settings, under OAuth & Permissions.',
    },
  ],
}
