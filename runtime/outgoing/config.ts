/**
 * The configuration of a strategy, and the checks that all strategies share.
 *
 * The configuration has the shape of the strategy object in the virtual server's configuration. Every member is
 * optional here and checked at run time, so that an error names its field. A secret is either a literal or the name of
 * a variable. Variables are read on every use, so that a rotated value takes effect without a restart.
 * Source: docs/reference/specification/virtual-server.md#outgoingAuth (config.outgoingAuth).
 */
import type * as schema from '../../schemas/index.ts'
import type { Violation } from '../../schemas/index.ts'
import { endpointViolation } from '../oauth/index.ts'
import type { BackendProvers } from './backend-provers.ts'
import type { CredentialCache } from './cache.ts'
import type { AccessToken, CredentialStrategy, UpstreamTokens } from './strategy.ts'
import type { Fetch, Log } from '../net/index.ts'

/** A block whose members are all optional. */
export type Block<T> = { readonly [K in keyof T]?: T[K] | undefined }

export type StrategyConfig = Pick<schema.OutgoingStrategy, 'type'> & {
  readonly [K in Exclude<keyof schema.OutgoingStrategy, 'type'>]?:
    | Block<NonNullable<schema.OutgoingStrategy[K]>>
    | undefined
}

export type CloudStsBlock = Block<schema.CloudStsStrategy>
export type OboBlock = Block<schema.OboStrategy>
export type XaaBlock = Block<schema.XaaStrategy>

/** Shared dependencies of the strategies. */
export interface StrategyParts {
  /** The fetch function for configured token endpoints. */
  readonly fetch: Fetch
  /** Like `fetch`, but for endpoints that may use plain http. */
  readonly httpFetch: Fetch
  /** Cache for temporary role credentials. */
  readonly cache: CredentialCache
  readonly tokens: CredentialCache<AccessToken>
  readonly provers: BackendProvers
  readonly upstream: UpstreamTokens | undefined
  /** Returns the value of an environment variable or mounted secret; undefined or '' when it does not exist. */
  readonly secret: (name: string) => string | undefined
  readonly enableObo: boolean
  readonly now: () => number
  readonly log: Log
  /** Reports each attempt to obtain a credential; `error` is undefined on success. */
  readonly obtained: (strategy: string, error: unknown) => void
  /** Returns the URL of a region's token service. */
  readonly stsEndpoint: (region: string) => string
}

/** Definition of an authentication strategy: validates its configuration block and creates the strategy. */
export interface StrategyModule {
  /** Returns the violations, with paths relative to the strategy object. */
  problems(config: StrategyConfig, parts: StrategyParts): readonly Violation[]
  /**
   * Creates the strategy. Called only when `problems` returned nothing. `field` is the path of the strategy object, for
   * errors.
   */
  make(config: StrategyConfig, parts: StrategyParts, field: string): CredentialStrategy
}

/**
 * Returns the violations of a secret, which is a literal or the name of a variable. `required` means that the literal
 * or the variable must be set.
 */
export function secretViolations(
  field: string,
  literal: string | undefined,
  variable: string | undefined,
  parts: Pick<StrategyParts, 'secret'>,
  { required = false }: { readonly required?: boolean } = {},
): readonly Violation[] {
  if (literal !== undefined && variable !== undefined)
    return [{ path: field, message: `excludes ${lastSegment(field)}Env` }]
  if (variable !== undefined && !parts.secret(variable)) {
    return [{ path: `${field}Env`, message: `the variable ${variable} is not set or empty` }]
  }
  return required && !literal && variable === undefined
    ? [{ path: field, message: `set ${lastSegment(field)} or ${lastSegment(field)}Env` }]
    : []
}

/** Returns a function that reads the current value of the secret. */
export function secretReader(
  literal: string | undefined,
  variable: string | undefined,
  parts: Pick<StrategyParts, 'secret'>,
): () => string | undefined {
  return () => (variable === undefined ? literal : parts.secret(variable)) || undefined
}

/** Returns the violations of a required URL. */
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
 * Returns the violation of a provider name: no component stores upstream tokens, the provider is unknown, or the name
 * is missing although there are several providers.
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
            message: `must name one of the upstream providers: ${providers.join(', ')}`,
          },
        ]
      : []
  }
  if (upstream === undefined) return [{ path: field, message: 'requires an embedded authorization server' }]
  return upstream.providers === undefined || providers.includes(name)
    ? []
    : [
        {
          path: field,
          message: `"${name}" is not an upstream provider; expected one of ${providers.join(', ')}`,
        },
      ]
}

/**
 * Returns the provider whose token identifies the user: the named provider, or the first provider if none is named.
 * Returns undefined for the caller's own token.
 */
export function providerOf(
  name: string | undefined,
  { upstream }: Pick<StrategyParts, 'upstream'>,
): string | undefined {
  return name || upstream?.providers?.[0]
}

function lastSegment(field: string): string {
  return field.slice(field.lastIndexOf('.') + 1)
}
