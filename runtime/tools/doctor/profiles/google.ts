import type { Profile } from './profile.ts'

export const google: Profile = {
  id: 'google',
  title: 'Google',
  host: /^accounts\.google\.com$/,
  docs: 'https://developers.google.com/identity/protocols/oauth2/native-app',
  quirks: [
    'no dynamic registration',
    'a refresh token requires access_type=offline and prompt=consent; while the app’s status is Testing, the token expires after 7 days',
    'access tokens are opaque',
    'Google’s own protected-resource documents contain the issuer with a trailing slash',
  ],
  fixes: {
    'registration.none':
      'Create an OAuth client of type “Desktop app” in the Google Cloud console (APIs & Services, Credentials), and give its id and secret to the MCP client.',
    'refresh.none':
      'Send access_type=offline and prompt=consent (gatehouse proxy --remote-auth-provider google does); publish the app, because refresh tokens expire after 7 days while it is in Testing.',
    'issuer.slash': 'Google’s issuer is https://accounts.google.com, without a trailing slash.',
    'token.audience':
      'Google’s access tokens are opaque and have no audience: send an ID token from your own client, or configure Gatehouse’s authServerConfig with Google as the upstream.',
  },
  errors: [
    {
      match: /redirect_uri_mismatch/,
      code: 'client.redirect',
      cause: 'redirect_uri_mismatch',
      fix: 'Add the redirect URI to the OAuth client, or use a client of type “Desktop app”, which accepts any loopback port.',
    },
  ],
}
