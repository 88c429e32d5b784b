/** Files that flags name: text of a bounded size, and tokens. */
import { readFileSync, statSync } from 'node:fs'
import { invalidConfig } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import { standardText } from './input.ts'

/** More is no token and no certificate bundle. */
const maxFileBytes = 1024 * 1024

/** The token or secret in a file; `-` is standard input. Throws INVALID_CONFIG naming the flag, never the content. */
export function readToken(flag: string, path: string): string {
  const token = readBounded(flag, path).trim()
  // A header value: anything else would be refused by the HTTP client, with the token in the message.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    const what = flag.endsWith('token-file') ? 'token' : 'secret'
    throw invalidConfig(`${flag}: ${path} must hold one ${what} of visible ASCII characters`)
  }
  return token
}

/** Throws INVALID_CONFIG naming the flag. */
export function readBounded(flag: string, path: string): string {
  try {
    if (path === '-') return standardText(flag)
    if (statSync(path).size > maxFileBytes) throw invalidConfig('it is larger than 1 MiB')
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw invalidConfig(`${flag}: ${path} cannot be read: ${systemReason(error)}`)
  }
}
