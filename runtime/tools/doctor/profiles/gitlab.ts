import type { Profile } from './profile.ts'

export const gitlab: Profile = {
  id: 'gitlab',
  title: 'GitLab',
  host: /^gitlab\.|\.gitlab\.com$/,
  docs: 'https://docs.gitlab.com/user/gitlab_duo/model_context_protocol/mcp_server/',
  quirks: [
    'the issuer consists only of the host',
    'clients that register themselves get only the mcp scope, which does not cover the REST API',
    'tokens are opaque and last 2 hours',
  ],
  fixes: {
    'issuer.mismatch': 'The issuer is the GitLab host’s URL, without a path.',
    'scopes.unknown':
      'Clients that register themselves get only the mcp scope: for other scopes, create an application (Preferences, Applications).',
    'client.scope':
      'Clients that register themselves get only the mcp scope: for other scopes, create an application (Preferences, Applications).',
    'token.audience': 'GitLab tokens are opaque: check them with introspection.',
  },
}
