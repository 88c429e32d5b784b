import { readFileSync, statSync } from 'node:fs'
import { invalidConfig } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import { standardText } from './input.ts'

/** A larger file cannot be a token or a certificate bundle. */
const maxFileBytes = 1024 * 1024

/**
 * Returns the token or secret in a file; `-` reads standard input. Throws INVALID_CONFIG, which contains the flag but
 * never the file's content.
 */
export function readToken(flag: string, path: string): string {
  const token = readBounded(flag, path).trim()
  // Accept only characters that are valid in a header value. The HTTP client would otherwise throw an error that
  // contains the token.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    const what = flag.endsWith('token-file') ? 'token' : 'secret'
    throw invalidConfig(`${flag}: ${path} must contain a single ${what} of visible ASCII characters`)
  }
  return token
}

/** Reads a file of at most 1 MiB. Throws INVALID_CONFIG, which contains the flag. */
export function readBounded(flag: string, path: string): string {
  try {
    if (path === '-') return standardText(flag)
    if (statSync(path).size > maxFileBytes) throw invalidConfig('larger than 1 MiB')
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw invalidConfig(`${flag}: cannot read ${path}: ${systemReason(error)}`)
  }
}
