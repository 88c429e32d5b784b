/**
 * Cleans text from untrusted peers for terminals and reports. The result is a single line of limited length, without
 * hidden characters or credentials.
 */
import { hiddenInLine } from '../../../../schemas/index.ts'
import { redactText } from '../../../observe/index.ts'

const maxText = 300

/** Cleans up text for one run's report. */
export type Clean = (text: unknown, maxLength?: number) => string

/** `secrets` are redacted. A login adds its secrets to the list. */
export function makeClean(secrets: readonly string[]): Clean {
  return (value, maxLength = maxText) => {
    let text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
    // Redact before truncating, because part of a secret is still a secret.
    text = text.slice(0, 65_536)
    for (const secret of secrets) if (secret.length >= 4) text = text.replaceAll(secret, '[redacted]')
    const line = redactText(text.slice(0, 4096)).replaceAll(hiddenInLine, '\ufffd')
    return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
  }
}
