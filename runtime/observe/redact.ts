/**
 * Prepares values for logs and other records: removes credentials, truncates text and escapes invisible characters.
 *
 * Recognizes a credential by its field name (token, secret, cookie, password, authorization, code, assertion, session)
 * or by its form: bearer values, JWTs, keys for well-known services, private keys, and the userinfo and query of URLs
 * in any text. Works on a copy, to a bounded depth.
 */
import { Secret } from './secret.ts'
import { hiddenAnywhere } from '../../schemas/index.ts'

const censored = '[redacted]'
const maxDepth = 5
const maxItems = 100
const maxText = 4096
/** Minimum length of a key. No known service uses shorter keys. */
const minKeyLength = 19

/**
 * Matches names of fields that contain a credential. Fields such as `tokenType`, `secretName` and `tokenUrl` only refer
 * to a credential.
 */
const secretName =
  /(?:authorization|cookie|password|passwd|passphrase|secret|token|assertion|verifier|credential|api[-_]?key|private[-_]?key|session[-_]?id|mcp-session-id|^dpop$|^session$|^code$|^state$|^nonce$|^sid$)s?$/i

/** Returns true when a field of this name must not be printed. */
export function isSecretName(name: string): boolean {
  return secretName.test(name)
}

const bearer = /\b(bearer|basic|dpop)\s+[\w\-.~+/=]{6,}/gi
const jwt = /\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*/g
/** Prefixes that issuers use for their keys: GitHub, GitLab, Slack, Stripe and model providers, AWS, Google. */
const knownKey =
  /\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|(?:sk|rk|pk)[-_](?:live|test|proj|ant)?[-_]?|AKIA|ASIA|AIza|ya29\.)[\w\-.]{16,}/g
const privateKey = /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?/g
/** Matches a credential with its name: `name=value` in forms and queries, or a JSON member embedded in text. */
const secretNames =
  '(?:access|refresh|id)_?token|client_?secret|client_?assertion|code_?verifier|subject_?token|password|passwd|api[-_]?key|secret|token'
const named = new RegExp(
  `(\\\\?"(?:${secretNames})\\\\?"\\s{0,4}:\\s{0,4}\\\\?")(?:[^"\\\\]|\\\\[^"])+|(\\b(?:${secretNames})=)[^"'\\\\\\s&;,]+`,
  'gi',
)
// Bounds the scheme, because the search must not rescan a long run of scheme characters from each character.
const urlQuery = /([a-z][a-z0-9+.-]{0,30}:\/\/)(?:[^\s/?#@"']*@)?([^\s?#"']*)([?#][^\s"']*)?/gi

/** Matches text to skip: it is shorter than any key, and contains no character that the other patterns require. */
const plain = /^[\w/-]{0,18}$/

/** Returns the text without bearer values, JWTs, and the userinfo, query and fragment of URLs. */
export function redactText(text: string): string {
  if (plain.test(text)) return text
  const short = text.length > maxText ? `${text.slice(0, maxText)}…` : text
  let out = short
  if (out.includes('://')) out = out.replace(urlQuery, redactUrl)
  if (out.includes('eyJ')) out = out.replace(jwt, censored)
  if (out.includes('-----BEGIN')) out = out.replace(privateKey, censored)
  if (out.includes('=') || out.includes('":')) out = out.replace(named, `$1$2${censored}`)
  if (out.length >= minKeyLength) out = out.replace(knownKey, censored)
  return out.replace(bearer, (_all, scheme: string) => `${scheme} ${censored}`)
}

function redactUrl(_all: string, scheme: string, rest: string, tail: string | undefined): string {
  return tail === undefined || tail === '' ? `${scheme}${rest}` : `${scheme}${rest}?${censored}`
}

/**
 * Returns a copy of the fields that is safe to print. Errors become `{ type, code, message, cause }`, without stacks.
 */
export function redactFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const out: Record<string, unknown> = {}
  for (const key of Object.keys(fields)) {
    const value = fields[key]
    out[key] = typeof value === 'number' || typeof value === 'boolean' ? value : redactValue(key, value, 0)
  }
  return out
}

function redactValue(key: string, value: unknown, depth: number): unknown {
  if (value === undefined || value === null || typeof value === 'number' || typeof value === 'boolean')
    return value
  if (secretName.test(key)) return value === '' ? '' : censored
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object') return `[${typeof value}]`
  if (value instanceof Secret) return value.toString()
  if (value instanceof Error) return redactError(value, depth)
  if (value instanceof URL) return redactText(value.href)
  if (value instanceof Date) return value.toISOString()
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth >= maxDepth) return '[deep]'
  if (Array.isArray(value)) return value.slice(0, maxItems).map((item) => redactValue('', item, depth + 1))
  const out: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(value).slice(0, maxItems))
    out[name] = redactValue(name, inner, depth + 1)
  return out
}

function redactError(error: Error, depth: number): Record<string, unknown> {
  const code: unknown = 'code' in error ? error.code : undefined
  const cause = error.cause
  return {
    type: error.name,
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    message: redactText(error.message),
    ...(cause === undefined || depth >= maxDepth ? {} : { cause: redactValue('', cause, depth + 1) }),
  }
}

/** Returns the longest prefix of `text` with at most `maxBytes` in UTF-8. */
export function cutBytes(text: string, maxBytes: number): string {
  // Skips the encoding of short text, because a UTF-16 unit never needs more than three bytes.
  if (text.length * 3 <= maxBytes) return text
  const bytes = Buffer.from(text.slice(0, maxBytes))
  if (bytes.length <= maxBytes && text.length <= maxBytes) return text
  let end = Math.min(maxBytes, bytes.length)
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

/** Escapes every invisible character as `\u{…}`. */
export function visibleText(text: string): string {
  return text.replaceAll(hiddenAnywhere, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)
}
