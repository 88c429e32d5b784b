/**
 * Carries the questions of an `input_required` result to a client that can be asked directly, and gathers the answers
 * for the request that is sent again.
 * Source: MCP 2026-07-28, patterns/mrtr.
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Changes, JsonObject } from '../../mcp/index.ts'
import type { Relay } from './connection.ts'

const MAX_QUESTIONS = 32
const ASKS: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list'])

/** Asks all questions side by side. Answers the members to add to params. Rejects when one cannot be answered. */
export async function answerInputRequests(
  result: Buffer,
  relay: Relay,
  signal: AbortSignal,
): Promise<Changes> {
  const required = new JsonObject(result)
  const questions = required.object('inputRequests')?.entries() ?? []
  if (questions.length > MAX_QUESTIONS) throw protocol('too many questions')
  const answers = await Promise.all(
    questions.map(async ([key, raw]): Promise<[string, Buffer]> => [key, await answer(raw, relay, signal)]),
  )
  const state = required.raw('requestState')
  if (questions.length === 0 && state === undefined) throw protocol('neither questions nor state')
  return {
    ...(answers.length > 0 ? { inputResponses: objectOf(answers) } : {}),
    requestState: state,
  }
}

async function answer(raw: Buffer, relay: Relay, signal: AbortSignal): Promise<Buffer> {
  if (raw[0] !== 0x7b) throw protocol('a question is no object')
  const question = new JsonObject(raw)
  const method = question.text('method') ?? ''
  if (!ASKS.has(method)) throw protocol('an unknown question')
  const reply = await relay.ask(
    { method, params: sessionQuestion(method, question.object('params')) },
    signal,
  )
  if (!reply.result) {
    throw new GatehouseError('BACKEND_UNAVAILABLE', {
      detail: 'the client did not answer a question of the backend',
    })
  }
  return reply.result
}

/**
 * A question as the session era puts it: there, a question that leads to an address carries an id, which this era has
 * no more.
 */
function sessionQuestion(method: string, params: JsonObject | undefined): Buffer | undefined {
  if (method !== 'elicitation/create' || params?.text('mode') !== 'url') return params?.bytes
  return params.raw('elicitationId') ? params.bytes : params.with({ elicitationId: `"${randomUUID()}"` })
}

function objectOf(members: readonly [string, Buffer][]): Buffer {
  return Buffer.from(`{${members.map(([key, raw]) => `${JSON.stringify(key)}:${raw.toString()}`).join(',')}}`)
}

function protocol(what: string): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', { cause: new Error(what) })
}
