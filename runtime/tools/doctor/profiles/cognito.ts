import type { Profile } from './profile.ts'

export const cognito: Profile = {
  id: 'cognito',
  title: 'Amazon Cognito',
  host: /^cognito-idp\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?$/,
  docs: 'https://docs.aws.amazon.com/cognito/latest/developerguide/federation-endpoints.html',
  quirks: [
    'OpenID Connect Discovery only; the metadata does not list S256, although Cognito supports PKCE',
    'no dynamic registration',
    'users log in at the pool’s domain, but the pool itself issues the tokens',
    'access tokens have client_id and no aud, unless resource is sent (Essentials or Plus)',
    'no offline_access scope: refresh tokens are always issued',
  ],
  fixes: {
    'pkce.absent':
      'Cognito supports S256 but does not advertise it. Configure Gatehouse’s authServerConfig with Cognito as the upstream, or log in with gatehouse proxy --remote-auth-provider cognito.',
    'registration.none':
      'Create an app client without a secret, with the authorization code grant and the redirect URI, and give its id to the MCP client.',
    'token.audience':
      'Cognito access tokens have no aud: check client_id instead, or send resource (requires managed login and the Essentials or Plus feature plan).',
    'client.redirect':
      'Add the redirect URI to the app client’s allowed callback URLs; http is allowed for localhost only.',
  },
  errors: [
    {
      match: /redirect_mismatch/,
      code: 'client.redirect',
      cause: 'redirect_mismatch',
      fix: 'Add the redirect URI to the app client’s allowed callback URLs.',
    },
  ],
}
