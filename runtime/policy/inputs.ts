/**
 * What the policies were given about one request, as the audit log records it where an operator asks for it: enough to ask
 * other policies the same question later.
 *
 * Source: docs/specification/virtual-server.md#audit; docs/guides/policies.md.
 */
import { isFields } from '../../schemas/index.ts'
import { JsonError, JsonObject } from '../mcp/index.ts'
import type { Caller } from '../net/index.ts'
import type { Authorizer } from './authorizer.ts'
import type { AccessRequest } from './requests.ts'
import type { PolicySubject } from './subject.ts'

/** `read`: what some policy reads. `all`: every claim and every argument. */
export type InputsMode = 'read' | 'all'

export interface PolicyInputs {
  readonly mode: InputsMode
  /** Ids of groups and roles. */
  readonly groups: readonly string[]
  /** With `read`: values by attribute, as the policies see them; null for one that is read and absent. */
  readonly attributes?: Readonly<Record<string, unknown>>
  /** With `all`. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly arguments?: unknown
  /** What the tool says of itself; absent where that was not looked up. */
  readonly hints?: Readonly<Record<string, boolean>> | undefined
}

interface Question {
  readonly authorizer: Authorizer
  readonly subject: PolicySubject
  readonly caller: Caller
  readonly request: AccessRequest
}

/** Throws INVALID_PARAMS when policies read arguments and these cannot be read. */
export function inputsOf(mode: InputsMode, question: Question): PolicyInputs {
  const { subject, caller, request } = question
  const common = { mode, groups: subject.parents.map(({ id }) => id), hints: request.hints }
  if (mode === 'read') return { ...common, attributes: readAttributes(question) }
  return { ...common, claims: caller.claims, arguments: recordedArguments(request) }
}

function readAttributes({ authorizer, subject, request }: Question): Record<string, unknown> {
  const { call } = authorizer.evidence(subject, request)
  return Object.fromEntries(
    [...authorizer.reads].map((name) => [name, plainValue(call.context[name] ?? null)]),
  )
}

/** Undefined where they cannot be read. */
export function recordedArguments({ arguments: raw }: AccessRequest): unknown {
  if (raw === undefined) return undefined
  try {
    return Object.fromEntries(
      new JsonObject(raw).entries().map(([name, json]) => [name, JSON.parse(json.toString()) as unknown]),
    )
  } catch (error) {
    if (error instanceof JsonError || error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A decimal of the engine as the number that it was made of. */
function plainValue(value: unknown): unknown {
  const extension = isFields(value) ? value['__extn'] : undefined
  if (isFields(extension) && extension['fn'] === 'decimal') return Number(extension['arg'])
  if (Array.isArray(value)) return value.map(plainValue)
  if (!isFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plainValue(inner)]))
}
