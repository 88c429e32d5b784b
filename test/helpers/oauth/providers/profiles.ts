/**
 * Nine identity providers, with the differences that their own documentation describes. Each one appears in the tests
 * of the proxy, of the embedded authorization server and of the doctor.
 */
import { atlassian, github, slack } from './oauth2-providers.ts'
import { auth0, cognito, entra, google, keycloak, okta } from './openid-providers.ts'

export const providerProfiles = {
  entra,
  okta,
  auth0,
  google,
  keycloak,
  github,
  slack,
  cognito,
  atlassian,
} as const
