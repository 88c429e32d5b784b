/**
 * Converts a client's file between bytes and text without loss, and finds line endings and positions.
 *
 * Accepts only UTF-8 text of at most 8 MiB, with or without a byte order mark.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { isUtf16 } from '../../../config/index.ts'

export const maxFileBytes = 8 * 1024 * 1024

export interface FileText {
  /** The text without the byte order mark. */
  readonly text: string
  readonly bom: boolean
}

/** Throws INVALID_CONFIG when the content is too large or not UTF-8. `encodeText` restores the same bytes. */
export function decodeText(bytes: Uint8Array, file: string): FileText {
  if (bytes.length > maxFileBytes) throw refusedFile(file, 'is larger than 8 MiB')
  if (isUtf16(bytes)) throw refusedFile(file, 'is UTF-16; save it as UTF-8')
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw refusedFile(file, 'is not valid UTF-8', cause)
  }
  const bom = text.startsWith('\ufeff')
  return { text: bom ? text.slice(1) : text, bom }
}

export function encodeText({ text, bom }: FileText): Buffer {
  return Buffer.from(bom ? `\ufeff${text}` : text, 'utf8')
}

/** Returns the line ending used by the first line. */
export function lineEndOf(text: string): '\n' | '\r\n' {
  const at = text.indexOf('\n')
  return at > 0 && text[at - 1] === '\r' ? '\r\n' : '\n'
}

/** Returns the one-based line and column of an offset. */
export function positionOf(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: offset - start + 1 }
}

/** Returns the offset where the line starts. */
export function lineStart(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1
}

/** Returns the offset after the end of the line, or the length of the text for the last line. */
export function nextLine(text: string, offset: number): number {
  const end = text.indexOf('\n', offset)
  return end < 0 ? text.length : end + 1
}

/** Returns the whitespace at the start of the line. */
export function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(lineStart(text, offset)))?.[0] ?? ''
}

export function refusedFile(file: string, why: string, cause?: unknown): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', { detail: `${file} ${why}`, cause })
}
