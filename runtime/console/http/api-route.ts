/** A route in the console's API: its request, the required permission, and the handler. */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Exchange } from '../../net/index.ts'
import type { Visitor } from '../access/visitor.ts'
import type { ActionSubject, ActionType } from '../acted.ts'
import type { Answers, Permission } from '../api.ts'

export interface ApiRequest {
  readonly exchange: Exchange
  readonly visitor: Visitor
  readonly permissions: ReadonlySet<Permission>
  /** The decoded values for `{}` in the path, in order. */
  readonly names: readonly string[]
  readonly query: URLSearchParams
  /** The parsed body of a POST. */
  readonly body: unknown
}

export interface ApiRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path relative to `api/v1/`; `{}` matches one name. */
  readonly path: keyof Answers
  /** Required permission; undefined if any signed-in user may call the route. */
  readonly needs?: Permission
  /** True for actions that require a recent login. */
  readonly fresh?: boolean
  /**
   * Audit type of the action, also used for rejected requests. The action's subject is the first name in the path
   * unless `about` is set.
   */
  readonly action?: ActionType
  /** Returns the subject of an action from an unvalidated body. */
  readonly about?: (body: unknown) => ActionSubject
  /**
   * The returned value is sent as JSON. If the value is undefined, the server responds with 204 unless the handler has
   * already sent a response.
   */
  handle(request: ApiRequest): unknown
}

export interface FoundRoute {
  readonly route: ApiRoute
  readonly names: readonly string[]
}

/** Returns the route for a request. Throws NOT_FOUND, METHOD_NOT_ALLOWED or BAD_REQUEST. */
export function findRoute(routes: readonly ApiRoute[], method: string, path: string): FoundRoute {
  const parts = path.split('/')
  const fitting = routes.filter((route) => fits(route.path.split('/'), parts))
  if (fitting.length === 0) throw new GatehouseError('NOT_FOUND')
  const route = fitting.find((one) => one.method === (method === 'HEAD' ? 'GET' : method))
  if (!route) {
    const allow = fitting.map((one) => one.method).join(', ')
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { allow } })
  }
  const pattern = route.path.split('/')
  return { route, names: parts.filter((_, i) => pattern[i] === '{}').map(decode) }
}

function fits(pattern: readonly string[], parts: readonly string[]): boolean {
  return (
    pattern.length === parts.length &&
    pattern.every((part, i) => (part === '{}' ? parts[i] !== '' : part === parts[i]))
  )
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new GatehouseError('BAD_REQUEST', { detail: 'invalid percent-encoding in the path' })
  }
}
