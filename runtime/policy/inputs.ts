/**
 * What the policies were given about one request, as the audit log records it where an operator asks for it: enough to ask
 * other policies the same question later.
 *
 * Source: docs/reference/specification/virtual-server.md#audit; docs/guides/policies.md.
 */
import { exactJson, isFields, isRawJson } from '../../schemas/index.ts'
import { JsonError, JsonObject } from '../mcp/index.ts'
import type { Authorizer } from './authorizer.ts'
import type { AccessRequest } from './requests.ts'
import type { PolicySubject } from './subject.ts'

/** `read`: what some policy reads. `all`: every claim and every argument. */
export type InputsMode = 'read' | 'all'

export interface PolicyInputs {
  readonly mode: InputsMode
  /** Ids of groups and roles. */
  readonly groups: readonly string[]
  /**
   * With `read`: values by attribute, as the policies see them; null for one that is read and absent. One that is not here
   * has a value that cannot be told.
   */
  readonly attributes?: Readonly<Record<string, unknown>>
  /** With `all`: those that the policies see. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined
  /** With `all`; null when they cannot be parsed. */
  readonly arguments?: unknown
  /** True when the caller is denied everything, regardless of policies. */
  readonly denyAll?: true
  /** What the tool says of itself; absent where that was not looked up. */
  readonly hints?: Readonly<Record<string, boolean>> | undefined
}

interface Question {
  readonly authorizer: Authorizer
  readonly subject: PolicySubject
  readonly request: AccessRequest
}

/** Throws INVALID_PARAMS when policies read arguments and these cannot be read. */
export function inputsOf(mode: InputsMode, question: Question): PolicyInputs {
  const { subject, request } = question
  const groups = subject.parents.map(({ id }) => id)
  const denied = subject.denyAll ? ({ denyAll: true } as const) : {}
  const common = { mode, groups, hints: request.hints, ...denied }
  if (mode === 'read') return { ...common, attributes: readAttributes(question) }
  return { ...common, claims: subject.claims, arguments: recordedArguments(request) }
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

/** Undefined where they cannot be read. */
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
 * A decimal of the engine as the number that it was made of; undefined for one that was rounded to a whole number, which
 * the engine would take for another type.
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
