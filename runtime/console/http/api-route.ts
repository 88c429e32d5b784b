/** One row of the console's API: which request it takes, what that needs, and what answers it. */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Exchange } from '../../net/index.ts'
import type { Visitor } from '../access/visitor.ts'
import type { ActionSubject, ActionType } from '../acted.ts'
import type { Answers, Permission } from '../api.ts'

export interface ApiRequest {
  readonly exchange: Exchange
  readonly visitor: Visitor
  readonly permissions: ReadonlySet<Permission>
  /** What stands for the `{}` of the path, decoded, in order. */
  readonly names: readonly string[]
  readonly query: URLSearchParams
  /** The parsed body of a POST. */
  readonly body: unknown
}

export interface ApiRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below `api/v1/`; `{}` stands for one name. */
  readonly path: keyof Answers
  /** Undefined: being signed in is enough. */
  readonly needs?: Permission
  /** True for actions that need a recent login. */
  readonly fresh?: boolean
  /** Audited under this type, refusals included; about the first name of the path unless `about` says otherwise. */
  readonly action?: ActionType
  /** What an action is about, of a body that nobody has checked yet. */
  readonly about?: (body: unknown) => ActionSubject
  /** Sends what it returns as JSON; undefined: 204, or it has answered by itself. */
  handle(request: ApiRequest): unknown
}

export interface FoundRoute {
  readonly route: ApiRoute
  readonly names: readonly string[]
}

/** The route of a request. Throws NOT_FOUND, METHOD_NOT_ALLOWED or BAD_REQUEST. */
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
    throw new GatehouseError('BAD_REQUEST', { detail: 'the path is not valid percent-encoding' })
  }
}
