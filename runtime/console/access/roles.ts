/**
 * Which roles somebody has, by the claims of the ID token: either claims are compared, or policies of the console's own are
 * asked. Read for each request, so that changed settings hold for who is signed in as well.
 *
 * Policies grant what they permit; what cannot be decided is not granted.
 */
import type { Caller, Log } from '../../net/index.ts'
import { type Authorizer, type ConsolePolicyAction, makeAuthorizer } from '../../policy/index.ts'
import type { Role } from '../api.ts'

export interface RoleRule {
  readonly role: Role
  readonly claim: string
  readonly values: readonly string[]
}

/** One of both; with policies the rules do not count. */
export interface RoleSettings {
  readonly roles?: readonly RoleRule[] | undefined
  readonly authz?: Parameters<typeof makeAuthorizer>[0] | undefined
}

export interface RoleParts {
  /** The settings in force, the same object as long as they are. */
  readonly settings: () => RoleSettings
  /** Id of the console to the policies. */
  readonly server: string
  readonly engineFailed: (error: unknown) => void
  readonly log: Log
}

export type RolesOf = (caller: Caller) => Promise<readonly Role[]>

/** Throws INVALID_CONFIG for policies that cannot be used; later ones grant nothing then. */
export function makeRoles({ settings, server, engineFailed, log }: RoleParts): RolesOf {
  const made = (found: RoleSettings): RolesOf =>
    found.authz
      ? byPolicies(makeAuthorizer(found.authz, { serverName: server, engineFailed, log }), server)
      : async ({ claims }) => byClaims(claims, found.roles ?? [])
  let known = settings()
  let rolesOf = made(known)

  return (caller) => {
    const found = settings()
    if (found !== known) {
      known = found
      rolesOf = orNobody(() => made(found), log)
    }
    return rolesOf(caller)
  }
}

function orNobody(make: () => RolesOf, log: Log): RolesOf {
  try {
    return make()
  } catch (err) {
    log.error('the policies of the console cannot be used; nobody has a role', { err })
    return async () => []
  }
}

/** Values are compared exactly, with a claim that is a text or a list of texts. */
function byClaims(claims: Caller['claims'], rules: readonly RoleRule[]): readonly Role[] {
  const granted = rules.filter(({ claim, values }) => {
    const found = Object.hasOwn(claims, claim) ? claims[claim] : undefined
    const texts: readonly unknown[] = Array.isArray(found) ? found : [found]
    return texts.some((text) => typeof text === 'string' && values.includes(text))
  })
  return [...new Set(granted.map(({ role }) => role))]
}

const actionOf: Readonly<Record<Role, ConsolePolicyAction>> = {
  viewer: 'console:view',
  operator: 'console:operate',
  auditor: 'console:audit',
}

function byPolicies(authorizer: Authorizer, server: string): RolesOf {
  return async (caller) => {
    const subject = await authorizer.subject(caller)
    return (Object.keys(actionOf) as Role[]).filter(
      (role) => authorizer.decide(subject, { action: actionOf[role], id: server }) === 'permitted',
    )
  }
}
