/**
 * What a peer says about a refusal, made fit for the log and the operator's own terminal: the description of an OAuth
 * error, the message of another JSON body, or the text of a page. Bounded, on one line, without control and invisible
 * characters. Long runs that look like a token are masked: peers repeat what they were sent.
 */
type JsonRecord = Readonly<Record<string, unknown>>

const maxLength = 300
/** Of a page, so that no pattern walks through a megabyte. */
const maxRead = 4_096

/** Members that hold a sentence for people, by preference: RFC 6749, RFC 9457, and habits of providers. */
const members = ['error_description', 'message', 'detail', 'errorSummary', 'error_message', 'title', 'reason']

/** Undefined when the peer said nothing. */
export function wordsOf(text: string, body: JsonRecord | undefined): string | undefined {
  const own = body === undefined ? withoutTags(text.slice(0, maxRead)) : sentenceIn(body)
  return own === undefined ? undefined : peerWords(own)
}

/** One text of a peer. Undefined when nothing is left of it. */
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
