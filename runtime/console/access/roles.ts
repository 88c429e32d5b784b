/**
 * Determines a user's console roles from the claims in the ID token, either by claim rules or by the console's
 * policies. Each request evaluates the roles, so changed settings also apply to signed-in users.
 *
 * Each allowed action grants its role, and a failed decision grants nothing.
 */
import { own } from '../../../schemas/index.ts'
import { isDeepStrictEqual } from 'node:util'
import type { Caller, Log } from '../../net/index.ts'
import type { Events } from '../../observe/index.ts'
import {
  type AuthorizerConfig,
  type ConsolePolicyAction,
  makeAuthorizer,
  type PolicyFailure,
  type PolicySubject,
} from '../../policy/index.ts'
import type { Role } from '../api.ts'

const maxText = 128

export interface RoleRule {
  readonly role: Role
  readonly claim: string
  readonly values: readonly string[]
}

/** Rules or policies. When policies are set, the rules are ignored. */
export interface RoleSettings {
  readonly roles?: readonly RoleRule[] | undefined
  readonly authz?: AuthorizerConfig | undefined
}

export interface RoleParts {
  /** The current settings. */
  readonly settings: () => RoleSettings
  /** Id that policies use for the console. */
  readonly server: string
  readonly events: Pick<Events, 'emit' | 'listen'>
  readonly log: Log
}

export interface Roles {
  of(caller: Caller): Promise<readonly Role[]>
  close(): void
}

type RolesOf = Roles['of']

/** Creates the roles. Throws INVALID_CONFIG for invalid policies. Policies that become invalid later grant nothing. */
export function makeRoles(parts: RoleParts): Roles {
  const failures = failuresIn(parts.events)
  const made = ({ authz, roles = [] }: RoleSettings): RolesOf =>
    authz ? byPolicies(authz, parts, failures) : async ({ claims }) => byClaims(claims, roles)
  let seen = parts.settings()
  let known = rulesIn(seen)
  let rolesOf = made(seen)

  function renew(): void {
    const found = parts.settings()
    if (found === seen) return
    seen = found
    // Keeps cached decisions and reported failures when a reload does not change the rules.
    if (isDeepStrictEqual(rulesIn(found), known)) return
    known = rulesIn(found)
    failures.forget()
    rolesOf = orNobody(() => made(found), failures)
  }
  // Clears the problems reported for the old policies without waiting for a visitor.
  const stop = parts.events.listen(({ type }) => {
    if (type === 'config_reloaded') renew()
  })

  return {
    of(caller) {
      renew()
      return rolesOf(caller)
    },
    close: stop,
  }
}

function rulesIn({ roles, authz }: RoleSettings): RoleSettings {
  return { roles, authz }
}

function orNobody(make: () => RolesOf, failures: Failures): RolesOf {
  try {
    return make()
  } catch (err) {
    failures.unusable(err)
    return async () => []
  }
}

interface Failures {
  failed(failure: PolicyFailure): void
  /** Reports that the caller cannot be represented in the policies. */
  reportUnsupportedCaller(reason: string, caller?: Caller): void
  unusable(err: unknown): void
  /** Called when the policies change. */
  forget(): void
}

function failuresIn(events: Pick<Events, 'emit'>): Failures {
  /** Limits the reported failures to the number of policies in one set. */
  const failing = new Set<string>()
  let isTold = false
  return {
    failed({ policy, effect, reason }) {
      if (policy === undefined) {
        this.reportUnsupportedCaller(reason)
        return
      }
      isTold = true
      failing.add(policy)
      events.emit('console_policies', { failing: [...failing], policy, effect, reason })
    },
    reportUnsupportedCaller: (reason, caller) =>
      events.emit('console_user_untold', { reason, user: caller?.subject.slice(0, maxText) }),
    unusable(err) {
      isTold = true
      events.emit('console_policies', { failing: [], unusable: true, err })
    },
    forget() {
      if (isTold) events.emit('console_policies', { failing: [] })
      isTold = false
      failing.clear()
    },
  }
}

/** Compares values exactly; a claim can be a string or a list of strings. */
function byClaims(claims: Caller['claims'], rules: readonly RoleRule[]): readonly Role[] {
  const granted = rules.filter(({ claim, values }) => {
    const found = own(claims, claim)
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

function byPolicies(
  authz: AuthorizerConfig,
  { server, events, log }: RoleParts,
  failures: Failures,
): RolesOf {
  const authorizer = makeAuthorizer(authz, {
    serverName: server,
    engineFailed: (err) => events.emit('policy_engine_failed', { err }),
    policyFailed: (failure) => failures.failed(failure),
    log,
  })
  const reported = new WeakSet<PolicySubject>()
  return async (caller) => {
    const subject = await authorizer.subject(caller)
    if (subject.denyAll && !reported.has(subject)) {
      reported.add(subject)
      failures.reportUnsupportedCaller('the caller has too many groups, or their names are too long', caller)
    }
    return (Object.keys(actionOf) as Role[]).filter(
      (role) => authorizer.decide(subject, { action: actionOf[role], id: server }) === 'permitted',
    )
  }
}
