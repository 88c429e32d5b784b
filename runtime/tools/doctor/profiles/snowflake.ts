import type { Profile } from './profile.ts'

export const snowflake: Profile = {
  id: 'snowflake',
  title: 'Snowflake',
  host: /\.snowflakecomputing\.(?:com|cn)$/,
  docs: 'https://docs.snowflake.com/user-guide/oauth-custom',
  quirks: [
    'endpoints /oauth/authorize and /oauth/token-request on the account',
    'no dynamic registration: a security integration of type OAUTH',
    'scopes refresh_token and session:role:{ROLE}; session:role-any is for External OAuth only',
  ],
  fixes: {
    'registration.none':
      'CREATE SECURITY INTEGRATION of type OAUTH, OAUTH_CLIENT = CUSTOM, with the redirect URI; its id and secret come from SYSTEM$SHOW_OAUTH_CLIENT_SECRETS.',
    'client.scope':
      'Use session:role:{ROLE} of a role that the user has; session:role-any is for External OAuth only.',
    'refresh.none': 'Set OAUTH_ISSUE_REFRESH_TOKENS = TRUE, and request the scope refresh_token.',
  },
}
