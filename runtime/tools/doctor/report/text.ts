/**
 * Makes text of untrusted peers fit for a terminal and a report: one line, no hidden characters, no
 * credentials, bounded.
 */
import { hiddenInLine } from '../../../../schemas/index.ts'
import { redactText } from '../../../observe/index.ts'

const maxText = 300

/** Cleans texts of one examination. */
export type Clean = (text: unknown, maxLength?: number) => string

/** `secrets`: what was handed in. A login adds to the list what it is given. */
export function makeClean(secrets: readonly string[]): Clean {
  return (value, maxLength = maxText) => {
    let text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
    // Before anything is cut: half a secret is a secret as well.
    text = text.slice(0, 65_536)
    for (const secret of secrets) if (secret.length >= 4) text = text.replaceAll(secret, '[redacted]')
    const line = redactText(text.slice(0, 4096)).replaceAll(hiddenInLine, '\ufffd')
    return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
  }
}
