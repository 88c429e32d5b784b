/**
 * Translates a server's questions to its client (elicitation, sampling, roots). In the session era, questions are
 * server requests. In the stateless era, questions are `inputRequests` in an interim result.
 * Source: MCP 2025-11-25, client features; MCP 2026-07-28, patterns/mrtr.
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Changes, JsonObject } from '../json/object.ts'
import { protocolError } from '../message.ts'

/** A question from the server to the client. The method is elicitation/create, sampling/createMessage or roots/list. */
export interface Ask {
  readonly method: string
  /** Raw params object. */
  readonly params: Buffer | undefined
}

/** The client's answer. Exactly one member is set. Both members are raw JSON objects. */
export interface AskReply {
  readonly result?: Buffer
  readonly error?: Buffer
}

const maxQuestions = 32
/** Maximum size of an interim result. An interim result is read in one event loop turn. */
const maxInterimBytes = 1024 * 1024
export const askMethods: ReadonlySet<string> = new Set([
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
])
/** Stateless-era methods whose responses may ask for client input. */
export const askingMethods: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** Maximum number of question rounds within one request. */
const maxRounds = 16

/**
 * Sends a request. Repeats the request with the client's answers until the server returns a final result. `send` adds
 * members to the params. `interimOf` returns an outcome's `input_required` result, or undefined. Rejects with
 * BACKEND_PROTOCOL after 16 rounds.
 */
export async function sendInRounds<T>(
  send: (changes: Changes) => Promise<T>,
  interimOf: (outcome: T) => Buffer | undefined,
  answer: (interim: Buffer) => Promise<Changes>,
): Promise<T> {
  let changes: Changes = {}
  for (let round = 0; round < maxRounds; round++) {
    const outcome = await send(changes)
    const interim = interimOf(outcome)
    if (!interim) return outcome
    changes = await answer(interim)
  }
  throw protocolError('the server kept asking questions after the maximum number of rounds')
}

/**
 * Returns the kind of a stateless result. Throws BACKEND_PROTOCOL for any kind that the request did not allow, such as a
 * task.
 */
export function resultKind(
  result: Buffer,
  { acceptsTask = false }: { readonly acceptsTask?: boolean | undefined } = {},
): 'result' | 'input' | 'task' {
  const type = new JsonObject(result).value('resultType')
  if (type === undefined || type === 'complete') return 'result'
  if (type === 'input_required') return 'input'
  if (type === 'task' && acceptsTask) return 'task'
  throw protocolError('the result type was not negotiated')
}

/** True for an `input_required` result, and false for a complete one. Throws the same errors as `resultKind`. */
export function isInterim(result: Buffer): boolean {
  return resultKind(result) === 'input'
}

/**
 * Asks all questions in an `input_required` result concurrently. Returns the members to add to the params of the
 * repeated request. Rejects if a question cannot be answered.
 */
export async function respondToInputRequests(
  result: Buffer,
  ask: (request: Ask, signal: AbortSignal) => Promise<AskReply>,
  signal: AbortSignal,
): Promise<Changes> {
  if (result.length > maxInterimBytes)
    throw protocolError(`an interim result is larger than ${maxInterimBytes} bytes`)
  const required = new JsonObject(result)
  const questions = required.object('inputRequests')?.entries() ?? []
  if (questions.length > maxQuestions) throw protocolError('too many questions')
  const responses = await Promise.all(
    questions.map(async ([key, raw]): Promise<[string, Buffer]> => [key, await response(raw, ask, signal)]),
  )
  const state = required.raw('requestState')
  if (questions.length === 0 && state === undefined)
    throw protocolError('an interim result without questions or state')
  return {
    ...(responses.length > 0 ? { inputResponses: objectOf(responses) } : {}),
    requestState: state,
  }
}

async function response(
  raw: Buffer,
  ask: (request: Ask, signal: AbortSignal) => Promise<AskReply>,
  signal: AbortSignal,
): Promise<Buffer> {
  if (raw[0] !== 0x7b) throw protocolError('a question is not an object')
  const question = new JsonObject(raw)
  const method = question.text('method') ?? ''
  if (!askMethods.has(method)) throw protocolError('a question with an unknown method')
  const reply = await ask({ method, params: sessionQuestion(method, question.object('params')) }, signal)
  if (!reply.result) {
    throw new GatehouseError('BACKEND_UNAVAILABLE', {
      detail: 'the client did not answer a question from the backend',
    })
  }
  return reply.result
}

/**
 * Translates a question's params for the session era. In this era, a question that contains a URL also requires an id,
 * which the stateless era does not have.
 */
function sessionQuestion(method: string, params: JsonObject | undefined): Buffer | undefined {
  if (method !== 'elicitation/create' || params?.text('mode') !== 'url') return params?.bytes
  return params.raw('elicitationId') ? params.bytes : params.with({ elicitationId: `"${randomUUID()}"` })
}

/** Translates a question for the stateless era. The result has no id and is never a task. */
export function statelessQuestion({ method, params }: Ask): Ask {
  if (params?.[0] !== 0x7b) return { method, params }
  const question = new JsonObject(params)
  const changes: Record<string, undefined> = {}
  for (const member of ['elicitationId', 'task']) if (question.raw(member)) changes[member] = undefined
  return Object.keys(changes).length === 0 ? { method, params } : { method, params: question.with(changes) }
}

/** Returns a raw InputRequests object. */
export function inputRequests(questions: Iterable<readonly [string, Ask]>): Buffer {
  const members = [...questions].map(([key, { method, params }]) => {
    const rest = params === undefined ? '' : `,"params":${params.toString()}`
    return `${JSON.stringify(key)}:{"method":${JSON.stringify(method)}${rest}}`
  })
  return Buffer.from(`{${members.join(',')}}`)
}

function objectOf(members: readonly [string, Buffer][]): Buffer {
  return Buffer.from(`{${members.map(([key, raw]) => `${JSON.stringify(key)}:${raw.toString()}`).join(',')}}`)
}
