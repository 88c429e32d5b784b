/**
 * Identity providers that are recognised by their issuer, and what is known of them. One file per provider; a new one is
 * a file and a line here. The quirks are documented in docs/reference/doctor.md.
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

/** By the issuer, or the host of it; undefined for an unknown provider. */
export function profileOf(issuer: string): Profile | undefined {
  if (!URL.canParse(issuer) || issuer.length > 2048) return undefined
  const { hostname, pathname } = new URL(issuer)
  return profiles.find(({ host, path }) => host?.test(hostname) === true || path?.test(pathname) === true)
}

export function profileNamed(id: string): Profile | undefined {
  return profiles.find((profile) => profile.id === id)
}
