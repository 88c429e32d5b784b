import type { Profile } from './profile.ts'

export const atlassian: Profile = {
  id: 'atlassian',
  title: 'Atlassian',
  host: /(?:^|\.)atlassian\.com$/,
  docs: 'https://developer.atlassian.com/cloud/jira/platform/oauth-2-3lo-apps/',
  quirks: [
    'https://auth.atlassian.com/authorize requires audience=api.atlassian.com and prompt=consent',
    'apps have a secret and do not support PKCE',
    'a refresh token requires offline_access and changes with each use',
    'the cloud id comes from api.atlassian.com/oauth/token/accessible-resources',
  ],
  fixes: {
    'registration.none':
      'Create an OAuth 2.0 (3LO) integration in the developer console, and configure Gatehouse’s authServerConfig for it, with audience=api.atlassian.com and prompt=consent as additional parameters.',
    'issuer-document.missing':
      'auth.atlassian.com publishes no metadata for 3LO apps. Configure Gatehouse’s authServerConfig with provider atlassian, or log in with gatehouse proxy --remote-auth-provider atlassian, --remote-auth-authorize-url and --remote-auth-token-url.',
    'pkce.absent':
      'auth.atlassian.com does not support PKCE for 3LO apps: let MCP clients log in through Gatehouse’s authServerConfig, which supports PKCE.',
    'refresh.none': 'Add the offline_access scope; the refresh token changes with each use.',
  },
}
