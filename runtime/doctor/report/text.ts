/**
 * Makes text of untrusted peers fit for a terminal and a report: one line, no control or direction characters, no
 * credentials, bounded.
 */
import { redactText } from '../../observe/index.ts'

const maxText = 300

/** Control and format characters (direction marks among them), line and paragraph separators. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Cleans texts of one examination. */
export type Clean = (text: unknown, maxLength?: number) => string

/** `secrets`: what was handed in. A login adds to the list what it is given. */
export function makeClean(secrets: readonly string[]): Clean {
  return (value, maxLength = maxText) => {
    let text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
    // Before anything is cut: half a secret is a secret as well.
    text = text.slice(0, 65_536)
    for (const secret of secrets) if (secret.length >= 4) text = text.replaceAll(secret, '[redacted]')
    const line = redactText(text.slice(0, 4096)).replace(unprintable, '\ufffd')
    return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
  }
}
