/** Reads text files that the user specifies. */
import { readFileSync } from 'node:fs'
import { GatehouseError } from '../../../schemas/index.ts'
import { systemReason } from './system-reason.ts'

/**
 * Returns a file's text. `subject` starts the error messages, such as "the file /etc/x". Throws INVALID_CONFIG for
 * unreadable files and for UTF-16, which PowerShell 5 writes with `>`.
 */
export function readTextFile(path: string, subject: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (cause) {
    const detail = `${subject} cannot be read: ${systemReason(cause)}`
    throw new GatehouseError('INVALID_CONFIG', { detail, cause })
  }
  if (isUtf16(bytes))
    throw new GatehouseError('INVALID_CONFIG', { detail: `${subject} is UTF-16; save it as UTF-8` })
  return bytes.toString('utf8')
}

/** Detects UTF-16 by its byte order mark. */
export function isUtf16(bytes: Uint8Array): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)
}
