/**
 * Builds the instructions that a client receives when it opens a session or discovers the server. Instructions from a
 * single backend are forwarded unchanged. Instructions from several backends are combined. Each backend's text is
 * quoted below a heading with the backend's name.
 * Source: MCP 2025-11-25, lifecycle, "Initialization" (instructions).
 */

/**
 * Maximum length of one backend's instructions, and of all instructions together, in UTF-16 code units without
 * quotation marks.
 */
export const maxInstructions = 16 * 1024
const maxCombined = 64 * 1024

const heading = '# Instructions from '
const introduction =
  "This server combines several MCP servers. Each server's quoted instructions apply only to that server's tools."

interface Source {
  readonly backend: string
  readonly server: { readonly instructions: string | undefined }
}

/**
 * Returns the combined instructions of `listings` in the given order. Returns undefined if there are no instructions.
 * The client must be allowed to see all of these instructions.
 */
export function instructionsOf(
  listings: readonly Source[],
  { isOnly }: { readonly isOnly: boolean },
): string | undefined {
  const texts = listings.flatMap(({ backend, server }) => {
    const text = server.instructions ?? ''
    return text.trim() === '' ? [] : [{ backend, text: shorten(text) }]
  })
  if (texts.length === 0) return undefined
  if (isOnly) return texts[0]?.text
  const parts = [introduction]
  let [length, leftOut] = [introduction.length, 0]
  for (const { backend, text } of texts) {
    const title = `${heading}${backend}`
    if (length + title.length + text.length > maxCombined) leftOut++
    else {
      length += title.length + text.length
      parts.push(`${title}\n\n${quote(text)}`)
    }
  }
  if (leftOut > 0) parts.push(`[Instructions from ${leftOut} more servers omitted]`)
  return parts.join('\n\n')
}

function shorten(text: string): string {
  if (text.length <= maxInstructions) return text
  // Do not split a surrogate pair.
  return `${text.slice(0, maxInstructions).replace(/[\uD800-\uDBFF]$/u, '')}\n[shortened]`
}

const lineEnd = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/u

/** Returns a Markdown quotation. An unquoted line from a backend could look like a heading in the combined text. */
function quote(text: string): string {
  return text
    .split(lineEnd)
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n')
}
