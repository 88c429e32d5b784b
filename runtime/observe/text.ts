/** Texts as they are recorded: cut to a number of bytes without breaking a character, and with what is not seen written out. */
import { hiddenAnywhere } from '../../schemas/index.ts'

/** The longest beginning of `text` that takes at most `maxBytes` in UTF-8. */
export function cutBytes(text: string, maxBytes: number): string {
  // A UTF-16 unit never takes more than three bytes.
  if (text.length * 3 <= maxBytes) return text
  const bytes = Buffer.from(text.slice(0, maxBytes))
  if (bytes.length <= maxBytes && text.length <= maxBytes) return text
  let end = Math.min(maxBytes, bytes.length)
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

/** The text with every character that is not seen as `\u{…}`. Other characters stay, whatever they look like. */
export function visibleText(text: string): string {
  return text.replaceAll(hiddenAnywhere, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`)
}
