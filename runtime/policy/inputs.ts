/**
 * The policy inputs of a request, for the audit log (when configured). These inputs are sufficient to evaluate other
 * policies for the same request later.
 *
 * Source: docs/reference/specification/virtual-server.md#audit; docs/guides/policies.md.
 */
import { exactJson, isFields, isRawJson } from '../../schemas/index.ts'
import { tokenFacts } from '../../schemas/cedar/index.ts'
import { JsonError, JsonObject } from '../mcp/index.ts'
import type { Authorizer } from './authorizer.ts'
import type { AccessRequest } from './requests.ts'
import type { PolicySubject, TokenFact } from './subject.ts'

/**
 * Extent of the inputs. `read` selects the attributes that a policy reads, and `all` selects every claim and every
 * argument.
 */
export type InputsMode = 'read' | 'all'

export interface PolicyInputs {
  readonly mode: InputsMode
  /** Group and role ids. */
  readonly groups: readonly string[]
  /**
   * Attribute values as the policies see them, if the mode is `read`; null for an absent attribute. A missing member
   * means that the value has no Cedar representation.
   */
  readonly attributes?: Readonly<Record<string, unknown>>
  /**
   * Facts about the caller's token; null for an absent fact. In mode `read`, contains only the facts that a policy
   * reads. Undefined in lines from older versions.
   */
  readonly principal?: RecordedFacts | undefined
  /** Claims that the policies see, if the mode is `all`. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined
  /** Arguments, if the mode is `all`; null for arguments that cannot be parsed. */
  readonly arguments?: unknown
  /** True when every request of the caller is denied, regardless of policies. */
  readonly denyAll?: true
  /** Hints of the tool; absent if they were not looked up. */
  readonly hints?: Readonly<Record<string, boolean>> | undefined
}

export type RecordedFacts = Readonly<Partial<Record<TokenFact, string | null>>>

interface Question {
  readonly authorizer: Authorizer
  readonly subject: PolicySubject
  readonly request: AccessRequest
}

function recordedFacts({ allFacts }: PolicySubject, names: Iterable<TokenFact>): RecordedFacts {
  return Object.fromEntries([...names].map((name) => [name, allFacts[name] ?? null]))
}

/** Throws INVALID_PARAMS when policies read arguments that cannot be parsed. */
export function inputsOf(mode: InputsMode, question: Question): PolicyInputs {
  const { authorizer, subject, request } = question
  const groups = subject.parents.map(({ id }) => id)
  const denied = subject.denyAll ? ({ denyAll: true } as const) : {}
  const common = { mode, groups, hints: request.hints, ...denied }
  if (mode === 'read') {
    const principal = authorizer.facts.size > 0 ? recordedFacts(subject, authorizer.facts) : undefined
    return { ...common, principal, attributes: readAttributes(question) }
  }
  const principal = recordedFacts(subject, tokenFacts)
  return { ...common, principal, claims: subject.claims, arguments: recordedArguments(request) }
}

function readAttributes({ authorizer, subject, request }: Question): Record<string, unknown> {
  const { call, unusable } = authorizer.evidence(subject, request)
  return Object.fromEntries(
    [...authorizer.reads].flatMap((name) => {
      const value = unusable.has(name) ? undefined : plainValue(call.context[name] ?? null)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/** Returns undefined when the arguments cannot be parsed. */
export function recordedArguments({ arguments: raw }: AccessRequest): unknown {
  if (raw === undefined) return undefined
  try {
    return Object.fromEntries(
      new JsonObject(raw).entries().map(([name, json]) => [name, exactJson(json.toString())]),
    )
  } catch (error) {
    if (error instanceof JsonError || error instanceof SyntaxError) return null
    throw error
  }
}

/**
 * Converts an engine decimal back to a number. Returns undefined for a decimal that was rounded to a whole number,
 * because the engine would treat a whole number as another type.
 */
function plainValue(value: unknown): unknown {
  if (isRawJson(value)) return value
  const extension = isFields(value) ? value['__extn'] : undefined
  if (isFields(extension) && extension['fn'] === 'decimal') {
    const number = Number(extension['arg'])
    return Number.isInteger(number) ? undefined : number
  }
  if (Array.isArray(value)) return whole(value.map(plainValue))
  if (!isFields(value)) return value
  const members = Object.entries(value).map(([name, inner]) => [name, plainValue(inner)] as const)
  return whole(members.map(([, inner]) => inner)) && Object.fromEntries(members)
}

function whole(values: readonly unknown[]): readonly unknown[] | undefined {
  return values.includes(undefined) ? undefined : values
}
