/**
 * The header block that goes back to the client: the target's, without headers of one hop, with the client's own
 * session id, and without a challenge that would lead the client around the proxy.
 */
import type { ServerResponse } from 'node:http'
import { hopByHop, namedByConnection } from '../net/index.ts'

/** undici's raw header list: name, value, name, value, … */
export type RawHeaders = readonly (Buffer | string)[]

export interface ResponseRules {
  /** The id under which the client knows the session; replaces the target's. */
  readonly sessionId: string | undefined
  /** True when the proxy owns the credential: the target's challenge is none of the client's business. */
  readonly hideChallenge: boolean
}

/** Lines (name, value, …) made of undici's raw header list. Keeps order, case and repetition. */
export function responseHeaders(raw: RawHeaders, res: ServerResponse, rules: ResponseRules): string[] {
  const lines: string[] = []
  const cors = res.hasHeader('access-control-allow-origin')
  const named = namedByConnection(connectionOf(raw))
  let vary = cors ? 'Origin' : ''
  for (let i = 0; i < raw.length; i += 2) {
    const shown = text(raw[i])
    const name = shown.toLowerCase()
    // `Trailer` announces what follows the body, which is passed on too.
    if (hopByHop.has(name) && name !== 'trailer') continue
    if (named.length > 0 && named.includes(name)) continue
    if (rules.hideChallenge && name === 'www-authenticate') continue
    if (cors) {
      if (name.startsWith('access-control-')) continue
      if (name === 'vary') {
        vary = `${text(raw[i + 1])}, ${vary}`
        continue
      }
    }
    if (name === 'mcp-session-id' && rules.sessionId !== undefined) lines.push(shown, rules.sessionId)
    else lines.push(shown, text(raw[i + 1]))
  }
  if (cors) lines.push('Vary', vary)
  return lines
}

function text(value: Buffer | string | undefined): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : value.toString('latin1')
}

function connectionOf(raw: RawHeaders): string | undefined {
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]
    if (name?.length === 10 && text(name).toLowerCase() === 'connection')
      return text(raw[i + 1]).toLowerCase()
  }
  return undefined
}

/** First value of a header in undici's raw list, by lower-case name. */
export function rawHeader(raw: RawHeaders, wanted: string): string | undefined {
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]
    if (name?.length === wanted.length && text(name).toLowerCase() === wanted) return text(raw[i + 1])
  }
  return undefined
}
