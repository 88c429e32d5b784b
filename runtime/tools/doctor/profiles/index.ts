/**
 * Identity providers that are recognized by their issuer, with their quirks and fixes. To add a provider, create a file
 * and add a line here. docs/reference/doctor.md lists the quirks.
 */
import { atlassian } from './atlassian.ts'
import { auth0 } from './auth0.ts'
import { cognito } from './cognito.ts'
import { entra } from './entra.ts'
import { github } from './github.ts'
import { gitlab } from './gitlab.ts'
import { google } from './google.ts'
import { keycloak } from './keycloak.ts'
import { okta } from './okta.ts'
import { authentik, ping, zitadel } from './others.ts'
import type { Profile } from './profile.ts'
import { salesforce } from './salesforce.ts'
import { slack } from './slack.ts'
import { snowflake } from './snowflake.ts'

export type { Profile }

export const profiles: readonly Profile[] = [
  entra,
  okta,
  auth0,
  google,
  keycloak,
  github,
  gitlab,
  atlassian,
  slack,
  salesforce,
  snowflake,
  cognito,
  ping,
  zitadel,
  authentik,
]

/** Returns the profile for an issuer, from its host or path. Undefined for an unknown provider. */
export function profileOf(issuer: string): Profile | undefined {
  if (!URL.canParse(issuer) || issuer.length > 2048) return undefined
  const { hostname, pathname } = new URL(issuer)
  return profiles.find(({ host, path }) => host?.test(hostname) === true || path?.test(pathname) === true)
}

export function profileNamed(id: string): Profile | undefined {
  return profiles.find((profile) => profile.id === id)
}
