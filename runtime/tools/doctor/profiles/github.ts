import type { Profile } from './profile.ts'

export const github: Profile = {
  id: 'github',
  title: 'GitHub',
  host: /^github\.com$/,
  docs: 'https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps',
  quirks: [
    'metadata only at /.well-known/oauth-authorization-server/login/oauth',
    'no dynamic registration',
    'tokens are opaque; the subject is id of https://api.github.com/user, never login',
    'GitHub Apps: tokens of 8 hours, refresh tokens are used once',
    'errors of the token endpoint come with status 200',
  ],
  fixes: {
    'registration.none':
      'Register an OAuth App or GitHub App (Settings, Developer settings) with the redirect URI, and give its client id and secret to the client.',
    'issuer-document.missing': 'The issuer is https://github.com/login/oauth, with its path.',
    'issuer-document.root': 'The issuer is https://github.com/login/oauth, with its path.',
    'refresh.none':
      'Tokens of OAuth Apps do not expire; for GitHub Apps enable “Expire user authorization tokens”.',
    'keys.missing':
      'Tokens of GitHub are opaque: check them by a request to https://api.github.com/user (userInfo of an upstream).',
    'client.redirect': 'Correct the callback URL of the app; loopback hosts may use any port.',
  },
}
