/**
 * Makes texts of servers, programs and documents fit for a terminal: without control characters, which could move the
 * cursor, hide what was printed, or write into the clipboard, and without other hidden characters.
 */
import { stripVTControlCharacters } from 'node:util'
import { hiddenInText } from '../../schemas/index.ts'

/** Several lines, each as it is but for what a terminal would act on. */
export function forTerminal(text: string): string {
  return stripVTControlCharacters(text).replaceAll('\r\n', '\n').replaceAll(hiddenInText, '\ufffd')
}

/** On one line, and not longer than a few of a terminal. */
export function oneLine(text: string, max = 500): string {
  const line = forTerminal(text).replaceAll(/\s+/g, ' ').trim()
  return line.length > max ? `${line.slice(0, max - 1)}…` : line
}
