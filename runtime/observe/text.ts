/** Prepares text for records: truncates to bytes without splitting characters, and escapes invisible characters. */
import { hiddenAnywhere } from '../../schemas/index.ts'

/** Returns the longest prefix of `text` with at most `maxBytes` in UTF-8. */
export function cutBytes(text: string, maxBytes: number): string {
  // A UTF-16 unit never needs more than three bytes.
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
