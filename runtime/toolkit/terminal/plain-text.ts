/**
 * Makes text from servers, programs and documents safe to print. Removes hidden characters, including control
 * characters, which could move the cursor, hide earlier output or write to the clipboard.
 */
import { StringDecoder } from 'node:string_decoder'
import { stripVTControlCharacters } from 'node:util'
import { hiddenInText } from '../../../schemas/index.ts'

/** Returns the text without control sequences and hidden characters. Keeps line breaks. */
export function forTerminal(text: string): string {
  return stripVTControlCharacters(text).replaceAll('\r\n', '\n').replaceAll(hiddenInText, '\ufffd')
}

/** Returns the text on one line, truncated to `max` characters. */
export function oneLine(text: string, max = 500): string {
  const line = forTerminal(text).replaceAll(/\s+/g, ' ').trim()
  return line.length > max ? `${line.slice(0, max - 1)}…` : line
}

/** Returns `1 tool`, or `2 tools`. */
export function quantity(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`
}

/** Maximum length of an unfinished line that is buffered until its end arrives. */
const maxLineChars = 65_536

/**
 * Returns a writer for program output. A file or pipe receives the raw bytes; a terminal receives whole lines that have
 * passed through `forTerminal`.
 */
export function outputWriter(stream: NodeJS.WriteStream): (chunk: Buffer) => void {
  if (!stream.isTTY) return (chunk) => void stream.write(chunk)
  const decoder = new StringDecoder('utf8')
  let rest = ''
  return (chunk) => {
    const text = rest + decoder.write(chunk)
    const end = text.length > maxLineChars ? text.length : text.lastIndexOf('\n') + 1
    rest = text.slice(end)
    if (end > 0) stream.write(forTerminal(text.slice(0, end)))
  }
}

/** Returns the text with a capital first letter. */
export function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}

/** Returns the end of an error message about an unknown name: the closest known name, if any, and then `rest`. */
export function withSuggestion(close: string | undefined, rest: string): string {
  return close === undefined ? rest : `did you mean ${close}? ${capitalized(rest)}`
}
