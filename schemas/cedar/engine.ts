/**
 * The Cedar engine, and the only file that knows its package. It can fail, and be replaced.
 *
 * The engine is WebAssembly. Whatever it throws (a trap, a used-up stack, data that it cannot take) leaves its own stack as
 * it was at that moment: every further call may fail. So an instance that has thrown once is dropped, and the next call
 * gets a new one. The engine is loaded with the first call: it costs 30 ms and some 20 MB that a process without policies
 * does not need.
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
/** A value as Cedar's JSON form has it. */
export type CedarValue = Cedar.CedarValueJson
export type PolicyJson = Cedar.PolicyJson
/** What the engine says of a text or a value that it does not take. */
export type EngineError = Cedar.DetailedError
export type AuthorizationCall = Omit<Cedar.StatefulAuthorizationCall, 'preparsedPolicySetId'>
export type AuthorizationAnswer = Cedar.AuthorizationAnswer

/** The engine failed and was replaced, or there is none. `cause` is for the log only. */
export class EngineFailure extends ModuleError {
  /** What to say of the input at hand, after its name. */
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
  /** Takes the module out of the cache: left there, it would give the same instance for ever. */
  readonly forget: () => void
}

let present: Loaded | undefined
let failures = 0

/** Calls the engine. Throws EngineFailure when it fails; `use` must do nothing else that can throw. */
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

/** How often the engine has failed in this process. */
export function engineFailures(): number {
  return failures
}

/** False when the engine does not answer even a new one's first question. For readiness checks. */
export function engineAnswers(): boolean {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      const question = { staticPolicies: 'permit(principal, action, resource);' }
      if (callEngine((engine) => engine.checkParsePolicySet(question)).type === 'success') return true
    } catch {
      // A new instance may do better.
    }
  }
  return false
}

/** Named in package.json; beside the bundles, in dist/, it is another file. */
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

/** The next call loads a new instance. */
function drop(): void {
  present?.forget()
  present = undefined
}

/** The engine frees no prepared set, so after so many it is replaced. */
const maxPrepared = 100
const prepared = new WeakMap<CedarEngine, Set<string>>()

/**
 * Makes a set of policies ready in the present engine, unless it is already. Throws EngineFailure. The response is what the
 * engine says against it.
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

/** What the engine says of a text that it cannot read, in one line. */
export function errorText(errors: readonly EngineError[]): string {
  const lines = errors.map(({ message, sourceLocations }) => {
    const place = sourceLocations?.[0]
    if (!place) return message
    return `${message} at character ${place.start}${place.label === null ? '' : `, ${place.label}`}`
  })
  return lines.join('; ').slice(0, 400)
}
