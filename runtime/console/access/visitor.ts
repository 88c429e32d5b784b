/** The console user, and the permissions that the user's roles grant. */
import type { Caller, Exchange, Stage } from '../../net/index.ts'
import type { Permission, Role } from '../api.ts'

export interface Visitor {
  /** The signed-in user; undefined in anonymous mode. */
  readonly user: { readonly sub: string; readonly name?: string } | undefined
  readonly roles: readonly Role[]
  /** Caller for trying tools. */
  readonly caller: Caller
  /** Required header value for all requests except GET. */
  readonly csrf: string
  /** False when the last login is too old for operator actions. */
  readonly freshLogin: boolean
  /** False when the visitor has signed out or the session has timed out. */
  isLive(): boolean | Promise<boolean>
}

/** Authenticates console requests. */
export interface VisitorAccess {
  readonly anonymous: boolean
  /**
   * Returns the visitor; undefined when the user is not signed in. Throws HOST_DENIED or FORBIDDEN for a forbidden
   * request.
   */
  visitor(exchange: Exchange): Visitor | undefined | Promise<Visitor | undefined>
  /** Returns the stage for a login or logout path; `path` is relative to the base path. */
  route(path: string): Stage<Exchange> | undefined
  close(): Promise<void>
}

const everybody: readonly Permission[] = ['tools', 'calls.own', 'try']
const viewing: readonly Permission[] = ['overview', 'calls.all', 'sessions.all']

const ofRole: Readonly<Record<Role, readonly Permission[]>> = {
  viewer: viewing,
  operator: [...viewing, 'policies', 'config', 'sessions.end', 'recheck', 'pins', 'explain'],
  auditor: [...viewing, 'policies', 'payloads'],
}

/** Returns the combined permissions of the roles. Users need no role to view their own data. */
export function permissionsOf(roles: readonly Role[]): readonly Permission[] {
  return [...new Set([...everybody, ...roles.flatMap((role) => ofRole[role])])]
}
