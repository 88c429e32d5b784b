/**
 * Errors of one era in the words of the other: in the stateless one a missing resource has no code of its own any more,
 * and "the user has to visit an address first" is a question, not an error.
 * Source: MCP 2026-07-28, basic, "Error Codes", client/elicitation; MCP 2025-11-25, client/elicitation, "URL Elicitation
 * Required Error".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Abilities, requireAbility } from './abilities.ts'
import type { Ask } from './questions.ts'
import { JsonObject } from '../json/object.ts'
import { scanElements } from '../json/read.ts'
import { rpcCode } from '../protocol.ts'

/** The error object in the words of the stateless era; `subject` is the URI that was asked for. */
export function statelessError(error: Buffer, subject: string | undefined): Buffer {
  const object = new JsonObject(error)
  const code = object.value('code')
  if (code === rpcCode.urlElicitationRequired) return object.with({ code: String(rpcCode.internal) })
  if (code !== rpcCode.resourceNotFound) return error
  const data = object.raw('data') ?? (subject === undefined ? undefined : JSON.stringify({ uri: subject }))
  return object.with({ code: String(rpcCode.invalidParams), ...(data === undefined ? {} : { data }) })
}

const maxAddresses = 32

/** The question that sends the user to an address. */
const visitQuestion: Ask = { method: 'elicitation/create', params: Buffer.from('{"mode":"url"}') }

/**
 * Returns the addresses that the user has to visit, as a raw InputRequests object; undefined when the error names none.
 * Throws CAPABILITY_REQUIRED when the client cannot send its user to an address.
 */
export function visitRequests(error: Buffer, abilities: Abilities): Buffer | undefined {
  const object = new JsonObject(error)
  if (object.value('code') !== rpcCode.urlElicitationRequired) return undefined
  const list = object.object('data')?.raw('elicitations')
  if (list?.[0] !== 0x5b) return undefined
  const questions = scanElements(list)
    .slice(0, maxAddresses)
    .flatMap((raw, i) => (raw[0] === 0x7b ? [visit(`visit-${i + 1}`, new JsonObject(raw))] : []))
    .filter((question) => question !== undefined)
  if (questions.length === 0) return undefined
  requireAbility(abilities, visitQuestion)
  return Buffer.from(`{${questions.join(',')}}`)
}

function visit(key: string, elicitation: JsonObject): string | undefined {
  const url = elicitation.text('url')
  const message = elicitation.text('message')
  if (url === undefined || message === undefined) return undefined
  const params = JSON.stringify({ mode: 'url', message, url })
  return `"${key}":{"method":"elicitation/create","params":${params}}`
}

/** Throws BACKEND_UNAVAILABLE when the user has declined to visit an address. */
export function requireVisits(responses: JsonObject | undefined): void {
  const isDeclined = (responses?.entries() ?? []).some(
    ([, raw]) => raw[0] === 0x7b && new JsonObject(raw).text('action') !== 'accept',
  )
  if (isDeclined)
    throw new GatehouseError('BACKEND_UNAVAILABLE', {
      detail: 'the user did not agree to open the address that the server needs',
    })
}

/** The error object of a stateless server in the words of the session era. */
export function sessionError(method: string, error: Buffer): Buffer {
  if (method !== 'resources/read') return error
  const object = new JsonObject(error)
  const missing =
    object.value('code') === rpcCode.invalidParams && object.object('data')?.text('uri') !== undefined
  return missing ? object.with({ code: String(rpcCode.resourceNotFound) }) : error
}
