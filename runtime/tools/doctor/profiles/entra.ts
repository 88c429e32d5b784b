import type { Profile } from './profile.ts'

export const entra: Profile = {
  id: 'entra',
  title: 'Microsoft Entra ID',
  host: /^login\.(?:microsoftonline\.(?:com|us)|partner\.microsoftonline\.cn|windows\.net)$|^sts\.windows\.net$/,
  docs: 'https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc',
  quirks: [
    'OpenID Connect Discovery only; the metadata does not list S256, although Entra ID supports PKCE',
    'no dynamic registration, no client metadata documents',
    'with v2 tokens, resource must equal an Application ID URI; otherwise, omit it',
    'scopes are {app-id-uri}/name; a bare name refers to Microsoft Graph',
    'version 1 tokens: iss https://sts.windows.net/{tid}/; version 2: iss …/v2.0',
    'the groups claim is omitted for users in more than 200 groups',
  ],
  fixes: {
    'pkce.absent':
      'Entra ID supports S256 but does not advertise it. Configure an embedded authorization server (authServerConfig with an Entra upstream), or log in with gatehouse proxy --remote-auth-provider entra.',
    'registration.none':
      'Register an application under App registrations with the platform “Mobile and desktop applications” and the redirect URI http://localhost (any port is accepted there), allow public client flows, and give its Application (client) ID to the MCP client.',
    'issuer.mismatch':
      'Use https://login.microsoftonline.com/{tenant id}/v2.0 with the tenant id: common and organizations have a different issuer.',
    'token.issuer':
      'Set requestedAccessTokenVersion to 2 in the manifest of the API’s registration, or accept https://sts.windows.net/{tenant id}/ as the issuer.',
    'token.audience':
      'Request the API’s scope {Application ID URI}/.default or /name: a version 2 token has the API’s client id as aud, and a version 1 token has its URI.',
    'scopes.unknown':
      'Write scopes in full, as api://{client id}/name: a bare name refers to Microsoft Graph.',
    'refresh.none': 'Request the offline_access scope (gatehouse proxy --remote-auth-provider entra does).',
  },
  errors: [
    {
      match: /AADSTS50011/,
      code: 'client.redirect',
      cause: 'AADSTS50011: the redirect URI is not registered',
      fix: 'Add the redirect URI under Authentication; to use any free port, add http://localhost with the platform “Mobile and desktop applications”.',
    },
    {
      match: /AADSTS700016/,
      code: 'client.unknown',
      cause: 'AADSTS700016: the application is not in this tenant',
      fix: 'Use the tenant in which the application is registered, or grant consent to the application in this tenant.',
    },
    {
      match: /AADSTS9010010|AADSTS500011/,
      code: 'client.target',
      cause: 'the resource is unknown in this tenant',
      fix: 'Set the API’s Application ID URI to the MCP server’s URL, or do not send resource.',
    },
    {
      match: /AADSTS650053|AADSTS70011/,
      code: 'client.scope',
      cause: 'a scope does not exist for the resource',
      fix: 'Write scopes in full, as {Application ID URI}/name.',
    },
  ],
}
