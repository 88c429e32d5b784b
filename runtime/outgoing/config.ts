/**
 * What a strategy is configured with, and the checks that all strategies share.
 *
 * The shape is the strategy object of the virtual server's file, and every member is optional here and checked at run time, so that an error names its field. A secret is a literal or the name of a
 * variable; a variable is read again at each use, so that a rotated value is reloaded.
 * Source: docs/reference/specification/virtual-server.md#outgoingAuth (config.outgoingAuth).
 */
import type * as schema from '../../schemas/index.ts'
import type { Violation } from '../../schemas/index.ts'
import { endpointViolation } from '../oauth/index.ts'
import type { CredentialCache } from './cache.ts'
import type { CredentialStrategy, UpstreamTokens } from './strategy.ts'
import type { Fetch, Log } from '../net/index.ts'

type Block<T> = { readonly [K in keyof T]?: T[K] | undefined }

export type StrategyConfig = Pick<schema.OutgoingStrategy, 'type'> & {
  readonly [K in Exclude<keyof schema.OutgoingStrategy, 'type'>]?:
    | Block<NonNullable<schema.OutgoingStrategy[K]>>
    | undefined
}

export type CloudStsBlock = Block<schema.CloudStsStrategy>
export type OboBlock = Block<schema.OboStrategy>
export type XaaBlock = Block<schema.XaaStrategy>

/** What strategies are made from, beside their configuration. */
export interface StrategyParts {
  /** For token endpoints that the operator wrote down. */
  readonly fetch: Fetch
  /** The same, for endpoints that may be plain http. */
  readonly httpFetch: Fetch
  readonly cache: CredentialCache
  readonly upstream: UpstreamTokens | undefined
  /** Value of an environment variable or mounted secret; undefined or empty: there is none. */
  readonly secret: (name: string) => string | undefined
  readonly enableObo: boolean
  readonly now: () => number
  readonly log: Log
  /** Called with each attempt to get a credential; `error` undefined: it worked. */
  readonly obtained: (strategy: string, error: unknown) => void
  /** Region -> URL of its token service. */
  readonly stsEndpoint: (region: string) => string
}

/** One way to authenticate: checks its block, makes the strategy. */
export interface StrategyModule {
  /** With paths relative to the strategy object. */
  problems(config: StrategyConfig, parts: StrategyParts): readonly Violation[]
  /** Called only when there are no problems. */
  make(config: StrategyConfig, parts: StrategyParts): CredentialStrategy
}

/** Errors of a secret that is given as literal or by variable. `required` wants one of the two. */
export function secretViolations(
  field: string,
  literal: string | undefined,
  variable: string | undefined,
  parts: Pick<StrategyParts, 'secret'>,
  { required = false }: { readonly required?: boolean } = {},
): readonly Violation[] {
  if (literal !== undefined && variable !== undefined)
    return [{ path: field, message: `excludes ${last(field)}Env` }]
  if (variable !== undefined && !parts.secret(variable)) {
    return [{ path: `${field}Env`, message: `the variable ${variable} is not set or empty` }]
  }
  return required && !literal && variable === undefined
    ? [{ path: field, message: `set ${last(field)} or ${last(field)}Env` }]
    : []
}

/** Reads the secret, each time again. */
export function secretReader(
  literal: string | undefined,
  variable: string | undefined,
  parts: Pick<StrategyParts, 'secret'>,
): () => string | undefined {
  return () => (variable === undefined ? literal : parts.secret(variable)) || undefined
}

/** Errors of a URL that must be there. */
export function urlViolations(
  field: string,
  value: string | undefined,
  allowHttp = false,
): readonly Violation[] {
  if (!value) return [{ path: field, message: 'is required' }]
  const problem = endpointViolation(value, allowHttp)
  return problem === undefined ? [] : [{ path: field, message: problem }]
}

/**
 * Error of an upstream's name: nothing could hold upstream tokens, there is no such provider, or none is named and
 * there are several.
 */
export function providerViolations(
  field: string,
  name: string | undefined,
  parts: StrategyParts,
): readonly Violation[] {
  const { upstream } = parts
  const { providers = [] } = upstream ?? {}
  if (!name) {
    return providers.length > 1
      ? [
          {
            path: field,
            message: `must name one of the upstream providers, which are ${providers.join(', ')}`,
          },
        ]
      : []
  }
  if (upstream === undefined) return [{ path: field, message: 'needs an embedded authorization server' }]
  return upstream.providers === undefined || providers.includes(name)
    ? []
    : [
        {
          path: field,
          message: `"${name}" is not the name of an upstream provider, which are ${providers.join(', ')}`,
        },
      ]
}

/** The provider whose token stands for the user: the named one, else the first; undefined: the caller's own token. */
export function providerOf(
  name: string | undefined,
  { upstream }: Pick<StrategyParts, 'upstream'>,
): string | undefined {
  return name || upstream?.providers?.[0]
}

function last(field: string): string {
  return field.slice(field.lastIndexOf('.') + 1)
}
