import type { Profile } from './profile.ts'

export const github: Profile = {
  id: 'github',
  title: 'GitHub',
  host: /^github\.com$/,
  docs: 'https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps',
  quirks: [
    'publishes metadata only at /.well-known/oauth-authorization-server/login/oauth',
    'no dynamic registration',
    'tokens are opaque; the subject is the id from https://api.github.com/user, never the login',
    'GitHub Apps: tokens expire after 8 hours, and refresh tokens can be used only once',
    'the token endpoint returns errors with status 200',
  ],
  fixes: {
    'registration.none':
      'Register an OAuth App or GitHub App (Settings, Developer settings) with the redirect URI, and give its client id and secret to the MCP client.',
    'issuer-document.missing': 'The issuer is https://github.com/login/oauth, including the path.',
    'issuer-document.root': 'The issuer is https://github.com/login/oauth, including the path.',
    'refresh.none':
      'OAuth App tokens do not expire; for GitHub Apps, enable “Expire user authorization tokens”.',
    'keys.missing':
      'GitHub tokens are opaque: check them with a request to https://api.github.com/user (an upstream’s userInfo).',
    'client.redirect': 'Correct the app’s callback URL; loopback hosts can use any port.',
  },
}
