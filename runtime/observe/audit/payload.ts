/**
 * Redacts and truncates bodies for the audit log.
 *
 * The code processes JSON token by token, so a large or truncated body is redacted like a complete body. It replaces
 * the values of members whose names indicate credentials, and searches every string for credentials. A body that is not
 * JSON is not recorded, because credentials in such a body cannot be located.
 * Source: config.audit (includeRequestData, includeResponseData, maxDataSize).
 */
import { decodeString, skipScalar, skipSpace, skipString, skipValue } from '../json-prefix.ts'
import type { MaskText } from '../record-mask.ts'
import { cutBytes, isSecretName, redactText } from '../redact.ts'

const censored = '"[redacted]"'
/** OAuth names that are common words elsewhere. Redaction removes only values that could be credentials. */
const ambiguous = /^(?:code|state|nonce|session|sid)s?$/i
/** Minimum length of a number that may identify a person. */
const minNumber = 6
const credentialLike = /^"[^\s"\\]{8,}"$/

export interface AuditPayload {
  /** One JSON value on one line: the body, or a string that contains the beginning of the body. */
  readonly json: string
  readonly truncated: boolean
}

export interface PayloadText {
  /** False when the body was truncated. */
  readonly whole: boolean
  /** Masks content other than credentials. */
  readonly mask?: MaskText | undefined
}

export function recordedPayload(
  text: string,
  { whole, mask = asItIs }: PayloadText,
  maxBytes: number,
): AuditPayload | undefined {
  const start = skipSpace(text, 0)
  const first = text.charCodeAt(start)
  if (first !== 0x7b && first !== 0x5b) return undefined
  const redacted = redactJson(text, start, maxBytes, mask)
  const cut = cutBytes(redacted.text, maxBytes)
  const truncated = !whole || !redacted.complete || cut.length < redacted.text.length
  // Embeds the text as JSON only if the text is valid JSON, on one line and without duplicate keys.
  const json = !truncated && isJson(cut) && !repeatsKey(cut) ? cut : JSON.stringify(cut)
  return { json, truncated }
}

function isJson(text: string, { lines = false }: { readonly lines?: boolean } = {}): boolean {
  try {
    JSON.parse(text)
    return lines || !text.includes('\n')
  } catch {
    return false
  }
}

/** True when an object in valid JSON text has a duplicate key, which readers of the log would interpret differently. */
function repeatsKey(text: string): boolean {
  let members = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x22) i = skipString(text, i) - 1
    else if (c === 0x3a) members++
  }
  const waiting: unknown[] = [JSON.parse(text)]
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value !== 'object' || value === null) continue
    const inner: unknown[] = Object.values(value)
    if (!Array.isArray(value)) members -= inner.length
    for (const one of inner) waiting.push(one)
  }
  return members !== 0
}

/** Returns at least `enough` characters of the JSON text, without credentials and without whitespace between tokens. */
function redactJson(
  text: string,
  from: number,
  enough: number,
  mask: MaskText,
): { text: string; complete: boolean } {
  let out = ''
  let i = from
  while (i < text.length) {
    if (out.length > enough) return { text: out, complete: false }
    if (text.charCodeAt(i) !== 0x22) {
      const end = isStructure(text.charCodeAt(i)) ? i + 1 : skipScalar(text, i)
      const token = text.slice(i, end < 0 ? text.length : end)
      out += token.length < minNumber ? token : maskedNumber(token, mask)
      i = end < 0 ? text.length : skipSpace(text, end)
      continue
    }
    const end = skipString(text, i)
    if (end < 0) return { text: out + unfinished(text.slice(i), mask), complete: false }
    const token = text.slice(i, end)
    const value = decodeString(token) ?? token
    const after = skipSpace(text, end)
    if (text.charCodeAt(after) !== 0x3a) {
      out += redactedToken(token, value, mask)
      i = after
      continue
    }
    out += `${redactedToken(token, value, mask)}:`
    i = skipSpace(text, after + 1)
    if (!isSecretName(value) || i >= text.length) continue
    const valueEnd = skipValue(text, i)
    if (valueEnd >= 0 && ambiguous.test(value) && !credentialLike.test(text.slice(i, valueEnd))) continue
    out += censored
    if (valueEnd < 0) return { text: out, complete: false }
    i = skipSpace(text, valueEnd)
  }
  return { text: out, complete: true }
}

function isStructure(c: number): boolean {
  return c === 0x7b || c === 0x7d || c === 0x5b || c === 0x5d || c === 0x2c || c === 0x3a
}

/** Searches strings for JSON, which tool results often contain. */
function redactedToken(token: string, value: string, mask: MaskText): string {
  const inner = value.charCodeAt(0)
  const nested = (inner === 0x7b || inner === 0x5b) && isJson(value, { lines: true })
  // Masks before truncation and redaction, which would break up matches.
  const masked = mask(nested ? redactJson(value, 0, value.length * 2, asItIs).text : value)
  const safe = redactText(masked)
  return safe === value ? token : JSON.stringify(safe)
}

/** Removes the last word of an unterminated string, which may be the beginning of a credential. */
function unfinished(token: string, mask: MaskText): string {
  const body = token.slice(1).replace(/\\[^"\\]{0,5}$/, '')
  return `"${redactText(mask(body)).replace(/[^\s\\"]+$/, '')}`
}

function maskedNumber(token: string, mask: MaskText): string {
  const masked = mask(token)
  return masked === token ? token : JSON.stringify(masked)
}

function asItIs(text: string): string {
  return text
}
