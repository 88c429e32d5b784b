/**
 * Extracts a server's explanation of a refusal, for the log and the operator's terminal. The source is the description
 * of an OAuth error, the message in another JSON body, or the text of a page. The result is short, on one line, and
 * free of control and invisible characters. Long strings that look like a token are masked, because servers repeat what
 * they receive.
 */
type JsonRecord = Readonly<Record<string, unknown>>

const maxLength = 300
/** Maximum number of characters to search in a page, so that no pattern scans a megabyte. */
const maxRead = 4_096

/**
 * Members that contain a human-readable message, in order of preference.
 * Source: RFC 6749, RFC 9457, and provider conventions.
 */
const members = ['error_description', 'message', 'detail', 'errorSummary', 'error_message', 'title', 'reason']

/** Returns the explanation in a response body, or undefined when it contains none. */
export function wordsOf(text: string, body: JsonRecord | undefined): string | undefined {
  const own = body === undefined ? withoutTags(text.slice(0, maxRead)) : sentenceIn(body)
  return own === undefined ? undefined : peerWords(own)
}

/** Cleans a string. Returns undefined when nothing is left. */
export function peerWords(text: string): string | undefined {
  const line = text
    .slice(0, maxRead)
    .replace(/[^\x20-\x7e\xa0-\u{10ffff}]|\p{Cf}|\p{Zl}|\p{Zp}/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .replace(/[\w.~+/=-]{40,}/g, '…')
    .trim()
  if (line === '') return undefined
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
}

function sentenceIn(body: JsonRecord): string | undefined {
  for (const name of members) {
    const value = body[name]
    if (typeof value === 'string' && value !== '') return value
  }
  const { error } = body
  if (typeof error === 'object' && error !== null && 'message' in error && typeof error.message === 'string')
    return error.message
  return undefined
}

function withoutTags(text: string): string {
  return text.replace(/<(?:script|style)\b[^>]{0,200}>[^<]*/gi, ' ').replace(/<[^<>]{0,500}>/g, ' ')
}
