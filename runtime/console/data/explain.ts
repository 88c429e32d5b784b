/** Parses an explain request and runs it. */
import { GatehouseError, isFields } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import type { ExplainResponse } from '../api.ts'
import type { ApiRequest } from '../http/api-route.ts'

const actions = ['call_tool', 'get_prompt', 'read_resource'] as const
const maxName = 8_192

export interface AskedExplanation {
  readonly claims: Readonly<Record<string, unknown>>
  readonly subject?: string | undefined
  readonly action: (typeof actions)[number]
  readonly name: string
  readonly arguments?: unknown
}

/** Explains how the running server would decide on a request. `caller` is the user who made the request. */
export type Explain = (question: AskedExplanation, caller: Caller) => Promise<ExplainResponse>

/** Explains a request. Rejects with BAD_REQUEST, with the name of the invalid member. */
export async function explained(explain: Explain, { body, visitor }: ApiRequest): Promise<ExplainResponse> {
  if (!isFields(body)) throw refused('the body', 'an object')
  const { claims, action, name, arguments: text } = body
  const known = actions.find((one) => one === action)
  if (!known) throw refused('action', `one of ${actions.join(', ')}`)
  if (typeof name !== 'string' || name.length > maxName)
    throw refused('name', `a string of at most ${maxName} characters`)
  if (claims !== undefined && !isFields(claims)) throw refused('claims', 'an object')
  const { caller } = visitor
  return explain(
    {
      claims: claims ?? caller.claims,
      subject: claims ? undefined : caller.subject,
      action: known,
      name,
      ...(text === undefined ? {} : { arguments: argumentsIn(text) }),
    },
    caller,
  )
}

function argumentsIn(text: unknown): unknown {
  try {
    const value: unknown = typeof text === 'string' ? JSON.parse(text) : undefined
    if (isFields(value)) return value
  } catch {
    // The code below rejects this value.
  }
  throw refused('arguments', 'a JSON object, serialized as text')
}

function refused(member: string, rule: string): GatehouseError {
  return new GatehouseError('BAD_REQUEST', { detail: `${member} must be ${rule}` })
}
