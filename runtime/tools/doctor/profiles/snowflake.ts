import type { Profile } from './profile.ts'

export const snowflake: Profile = {
  id: 'snowflake',
  title: 'Snowflake',
  host: /\.snowflakecomputing\.(?:com|cn)$/,
  docs: 'https://docs.snowflake.com/user-guide/oauth-custom',
  quirks: [
    'the endpoints are /oauth/authorize and /oauth/token-request on the account’s host',
    'no dynamic registration: requires a security integration of type OAUTH',
    'the scopes are refresh_token and session:role:{ROLE}; session:role-any is for External OAuth only',
  ],
  fixes: {
    'registration.none':
      'Run CREATE SECURITY INTEGRATION with TYPE = OAUTH, OAUTH_CLIENT = CUSTOM and the redirect URI; its id and secret come from SYSTEM$SHOW_OAUTH_CLIENT_SECRETS.',
    'client.scope':
      'Use session:role:{ROLE} with a role that the user has; session:role-any is for External OAuth only.',
    'refresh.none': 'Set OAUTH_ISSUE_REFRESH_TOKENS = TRUE, and request the scope refresh_token.',
  },
}
