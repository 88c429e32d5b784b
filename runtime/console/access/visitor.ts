/** Who looks at the console, and what roles permit. */
import type { Caller, Exchange, Stage } from '../../net/index.ts'
import type { Permission, Role } from '../api.ts'

export interface Visitor {
  /** Undefined in anonymous mode. */
  readonly user: { readonly sub: string; readonly name?: string } | undefined
  readonly roles: readonly Role[]
  /** The caller that tools are tried as. */
  readonly caller: Caller
  /** Value of the header that every request but GET carries. */
  readonly csrf: string
  /** False when the last login is too old for the actions of operators. */
  readonly freshLogin: boolean
  /** False once the visitor has signed out, or was away for too long. */
  isLive(): boolean | Promise<boolean>
}

/** Decides who a request comes from. */
export interface VisitorAccess {
  readonly anonymous: boolean
  /** Undefined: nobody is signed in. Throws HOST_DENIED or FORBIDDEN for what must not be served at all. */
  visitor(exchange: Exchange): Visitor | undefined | Promise<Visitor | undefined>
  /** The stage of a path that belongs to signing in and out; `path` is below the base path. */
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

/** What somebody with these roles may do. Roles add up; what concerns only oneself needs none. */
export function permissionsOf(roles: readonly Role[]): readonly Permission[] {
  return [...new Set([...everybody, ...roles.flatMap((role) => ofRole[role])])]
}
