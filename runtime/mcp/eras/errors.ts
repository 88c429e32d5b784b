/**
 * Errors of one era in the words of the other: in the stateless one a missing resource has no code of its own any more,
 * and "the user has to visit an address first" is a question, not an error.
 * Source: MCP 2026-07-28, basic, "Error Codes", client/elicitation; MCP 2025-11-25, client/elicitation, "URL Elicitation
 * Required Error".
 */
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

/** The addresses that the user has to visit, as a raw InputRequests object; undefined when the error names none. */
export function visitRequests(error: Buffer): Buffer | undefined {
  const object = new JsonObject(error)
  if (object.value('code') !== rpcCode.urlElicitationRequired) return undefined
  const list = object.object('data')?.raw('elicitations')
  if (list?.[0] !== 0x5b) return undefined
  const questions = scanElements(list)
    .slice(0, maxAddresses)
    .flatMap((raw, i) => (raw[0] === 0x7b ? [visit(`visit-${i + 1}`, new JsonObject(raw))] : []))
    .filter((question) => question !== undefined)
  return questions.length === 0 ? undefined : Buffer.from(`{${questions.join(',')}}`)
}

function visit(key: string, elicitation: JsonObject): string | undefined {
  const url = elicitation.text('url')
  const message = elicitation.text('message')
  if (url === undefined || message === undefined) return undefined
  const params = JSON.stringify({ mode: 'url', message, url })
  return `"${key}":{"method":"elicitation/create","params":${params}}`
}

/** True unless the user has agreed to visit every address. */
export function isDeclined(responses: JsonObject | undefined): boolean {
  return (responses?.entries() ?? []).some(
    ([, raw]) => raw[0] === 0x7b && new JsonObject(raw).text('action') !== 'accept',
  )
}

/** The error object of a stateless server in the words of the session era. */
export function sessionError(method: string, error: Buffer): Buffer {
  if (method !== 'resources/read') return error
  const object = new JsonObject(error)
  const missing =
    object.value('code') === rpcCode.invalidParams && object.object('data')?.text('uri') !== undefined
  return missing ? object.with({ code: String(rpcCode.resourceNotFound) }) : error
}
