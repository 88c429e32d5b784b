/**
 * Translates errors between the eras. The stateless era has no separate code for a missing resource. In the stateless
 * era, a server that requires the user to open a URL first sends a question instead of an error.
 * Source: MCP 2026-07-28, basic, "Error Codes", client/elicitation; MCP 2025-11-25, client/elicitation, "URL
 * Elicitation Required Error".
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type Abilities, requireAbility } from './abilities.ts'
import type { Ask } from './questions.ts'
import { JsonObject } from '../json/object.ts'
import { scanElements } from '../json/read.ts'
import { rpcCode } from '../protocol.ts'

/** Translates an error object for the stateless era. `subject` is the requested URI. */
export function statelessError(error: Buffer, subject: string | undefined): Buffer {
  const object = new JsonObject(error)
  const code = object.value('code')
  if (code === rpcCode.urlElicitationRequired) return object.with({ code: String(rpcCode.internal) })
  if (code !== rpcCode.resourceNotFound) return error
  const data = object.raw('data') ?? (subject === undefined ? undefined : JSON.stringify({ uri: subject }))
  return object.with({ code: String(rpcCode.invalidParams), ...(data === undefined ? {} : { data }) })
}

const maxAddresses = 32

/** A question that asks the user to open a URL. */
const visitQuestion: Ask = { method: 'elicitation/create', params: Buffer.from('{"mode":"url"}') }

/**
 * Returns the URLs that the user must open, as a raw InputRequests object. Returns undefined if the error contains no
 * URLs. Throws CAPABILITY_REQUIRED if the client does not support URL elicitation.
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

/** Throws BACKEND_UNAVAILABLE if the user has declined to open a URL. */
export function requireVisits(responses: JsonObject | undefined): void {
  const isDeclined = (responses?.entries() ?? []).some(
    ([, raw]) => raw[0] === 0x7b && new JsonObject(raw).text('action') !== 'accept',
  )
  if (isDeclined)
    throw new GatehouseError('BACKEND_UNAVAILABLE', {
      detail: 'the user declined to open the URL that the server requires',
    })
}

/** Translates a stateless server's error object for the session era. */
export function sessionError(method: string, error: Buffer): Buffer {
  if (method !== 'resources/read') return error
  const object = new JsonObject(error)
  const missing =
    object.value('code') === rpcCode.invalidParams && object.object('data')?.text('uri') !== undefined
  return missing ? object.with({ code: String(rpcCode.resourceNotFound) }) : error
}
