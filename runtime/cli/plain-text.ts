/**
 * Text that others wrote, on a terminal: of servers, of programs, of documents. Without control characters, which could move the cursor, hide what was printed, or
 * write into the clipboard, and without those that change the direction of text.
 */

import { stripVTControlCharacters } from 'node:util'

/** All but line feed, tab, and the joiner inside of emoji. */
const unsafe = /(?![\n\t\u200d])[\p{Cc}\p{Cf}]/gu

/** Several lines, each as it is but for what a terminal would act on. */
export function forTerminal(text: string): string {
  return stripVTControlCharacters(text).replaceAll('\r\n', '\n').replaceAll(unsafe, '\ufffd')
}

/** On one line, and not longer than a few of a terminal. */
export function oneLine(text: string, max = 500): string {
  const line = forTerminal(text).replaceAll(/\s+/g, ' ').trim()
  return line.length > max ? `${line.slice(0, max - 1)}…` : line
}
