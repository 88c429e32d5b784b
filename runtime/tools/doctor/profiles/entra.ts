import type { Profile } from './profile.ts'

export const entra: Profile = {
  id: 'entra',
  title: 'Microsoft Entra ID',
  host: /^login\.(?:microsoftonline\.(?:com|us)|partner\.microsoftonline\.cn|windows\.net)$|^sts\.windows\.net$/,
  docs: 'https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc',
  quirks: [
    'OpenID Connect Discovery only; its metadata does not list S256, although it supports PKCE',
    'no dynamic registration, no client metadata documents',
    'resource must equal an Application ID URI with v2 tokens, otherwise omit it',
    'scopes are {app-id-uri}/name; a bare name refers to Microsoft Graph',
    'version 1 tokens: iss https://sts.windows.net/{tid}/; version 2: iss …/v2.0',
    'the groups claim is omitted above 200 groups',
  ],
  fixes: {
    'pkce.absent':
      'Entra ID supports S256 but does not advertise it. Use an embedded authorization server in front of it (authServerConfig with an Entra upstream), or log in with gatehouse proxy --remote-auth-provider entra.',
    'registration.none':
      'Register an application under App registrations, platform “Mobile and desktop applications”, redirect URI http://localhost (any port is accepted there), allow public client flows, and give its Application (client) ID to the client.',
    'issuer.mismatch':
      'Use https://login.microsoftonline.com/{tenant id}/v2.0 with the id of the tenant: common and organizations have another issuer.',
    'token.issuer':
      'Set requestedAccessTokenVersion to 2 in the manifest of the API’s registration, or accept https://sts.windows.net/{tenant id}/ as issuer.',
    'token.audience':
      'Request the scope {Application ID URI}/.default or /name of the API: a version 2 token has the client id of the API as aud, a version 1 token its URI.',
    'scopes.unknown': 'Write scopes in full, api://{client id}/name: a bare name refers to Microsoft Graph.',
    'refresh.none': 'Request the scope offline_access (gatehouse proxy --remote-auth-provider entra does).',
  },
  errors: [
    {
      match: /AADSTS50011/,
      code: 'client.redirect',
      cause: 'AADSTS50011: the redirect URI is not registered',
      fix: 'Add the redirect URI under Authentication; for a free port use http://localhost and the platform “Mobile and desktop applications”.',
    },
    {
      match: /AADSTS700016/,
      code: 'client.unknown',
      cause: 'AADSTS700016: the application is not in this tenant',
      fix: 'Use the tenant in which the application is registered, or give consent to it in this tenant.',
    },
    {
      match: /AADSTS9010010|AADSTS500011/,
      code: 'client.target',
      cause: 'the resource is unknown in this tenant',
      fix: 'Set the Application ID URI of the API to the URL of the MCP server, or do not send resource.',
    },
    {
      match: /AADSTS650053|AADSTS70011/,
      code: 'client.scope',
      cause: 'a scope does not exist for the resource',
      fix: 'Write scopes in full: {Application ID URI}/name.',
    },
  ],
}
