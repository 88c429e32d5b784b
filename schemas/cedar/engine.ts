/**
 * Wraps the Cedar engine. No other file imports the engine's package.
 *
 * The engine is WebAssembly. When the engine throws (a trap, stack exhaustion, invalid data), its stack is left in an
 * undefined state, and every later call may fail. Therefore, the wrapper drops an instance that has thrown, and the
 * next call loads a new instance. The first call loads the engine, which costs 30 ms and about 20 MB. A process without
 * policies does not load the engine.
 */
import { ModuleError } from '../errors.ts'
import { createRequire } from 'node:module'
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs'

export type CedarEngine = Pick<
  typeof Cedar,
  | 'checkParseEntities'
  | 'checkParsePolicySet'
  | 'isAuthorized'
  | 'policySetTextToParts'
  | 'policyToJson'
  | 'policyToText'
  | 'preparsePolicySet'
  | 'statefulIsAuthorized'
>
/** A value in Cedar's JSON format. */
export type CedarValue = Cedar.CedarValueJson
export type PolicyJson = Cedar.PolicyJson
/** The engine's error for invalid text or an invalid value. */
export type EngineError = Cedar.DetailedError
export type AuthorizationCall = Omit<Cedar.StatefulAuthorizationCall, 'preparsedPolicySetId'>
export type AuthorizationAnswer = Cedar.AuthorizationAnswer

/** Thrown when the engine failed and was replaced, or could not be loaded. `cause` is for the log only. */
export class EngineFailure extends ModuleError {
  /** Message that callers append to the name of the current input. */
  readonly verdict: string

  constructor(cause: unknown, { loaded = true }: { readonly loaded?: boolean } = {}) {
    super(loaded ? 'the policy engine failed' : 'the policy engine cannot be loaded', { cause })
    this.verdict = loaded
      ? 'could not be processed by the policy engine; simplify it'
      : 'cannot be checked: the policy engine cannot be loaded'
  }
}

interface Loaded {
  readonly engine: CedarEngine
  /** Removes the module from the module cache. Otherwise, the cache would always return the same instance. */
  readonly forget: () => void
}

let present: Loaded | undefined
let failures = 0

/** Calls the engine. Throws EngineFailure when the engine fails; `use` must not throw for any other reason. */
export function callEngine<T>(use: (engine: CedarEngine) => T): T {
  const loaded = (present ??= load())
  try {
    return use(loaded.engine)
  } catch (cause) {
    drop()
    failures += 1
    throw new EngineFailure(cause)
  }
}

/** Returns the number of engine failures in this process. */
export function engineFailures(): number {
  return failures
}

/** Returns false when even a new instance cannot answer a simple query. Readiness checks call this function. */
export function engineAnswers(): boolean {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      const question = { staticPolicies: 'permit(principal, action, resource);' }
      if (callEngine((engine) => engine.checkParsePolicySet(question)).type === 'success') return true
    } catch {
      // Retry with a new instance.
    }
  }
  return false
}

/** Alias from package.json. In a build, the alias resolves to a different file in dist/. */
const packageName = '#cedar'

/** Loads the package, which creates an engine instance when its module is evaluated. */
function load(): Loaded {
  const require = createRequire(import.meta.url)
  try {
    const path = require.resolve(packageName)
    return { engine: require(packageName) as CedarEngine, forget: () => delete require.cache[path] }
  } catch (cause) {
    failures += 1
    throw new EngineFailure(cause, { loaded: false })
  }
}

/** Drops the instance. The next call loads a new instance. */
function drop(): void {
  present?.forget()
  present = undefined
}

/** Number of prepared sets after which the engine is replaced, because the engine never frees a prepared set. */
const maxPrepared = 100
const prepared = new WeakMap<CedarEngine, Set<string>>()

/**
 * Prepares a set of policies in the current engine, unless it is already prepared. Returns the engine's errors. Throws
 * EngineFailure.
 */
export function prepare(
  engine: CedarEngine,
  id: string,
  policies: Readonly<Record<string, string>>,
): readonly EngineError[] {
  const ids = prepared.get(engine) ?? new Set()
  prepared.set(engine, ids)
  if (ids.has(id)) return []
  const response = engine.preparsePolicySet(id, { staticPolicies: policies })
  if (response.type === 'failure') return response.errors
  ids.add(id)
  if (ids.size >= maxPrepared && present?.engine === engine) drop()
  return []
}

/** Returns the engine's parse errors on one line. */
export function errorText(errors: readonly EngineError[]): string {
  const lines = errors.map(({ message, sourceLocations }) => {
    const place = sourceLocations?.[0]
    if (!place) return message
    return `${message} at character ${place.start}${place.label === null ? '' : `, ${place.label}`}`
  })
  return lines.join('; ').slice(0, 400)
}
