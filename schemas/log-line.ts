/**
 * Log lines in the hooks and the runtime: formats, levels, the default format, and the conversion of a JSON line to
 * text for a terminal.
 */
import { hiddenInLine, unicodeEscape } from './hidden-characters.ts'

export const logFormats = ['json', 'text'] as const
export type LogFormat = (typeof logFormats)[number]

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevelName = (typeof logLevels)[number]

/** True when the log writes lines at `level` while the configured level is `least`. */
export function isLogged(level: LogLevelName, least: LogLevelName): boolean {
  return logLevels.indexOf(level) >= logLevels.indexOf(least)
}

interface Stream {
  readonly isTTY?: boolean
}

/** Returns the requested format; by default, text for a terminal and JSON for everything else. */
export function logFormatFor(asked: LogFormat | undefined, stream: Stream): LogFormat {
  return asked ?? (stream.isTTY ? 'text' : 'json')
}

/** True when text on this stream may be colored. Source: no-color.org. */
export function isColoured(stream: Stream, env: Readonly<Record<string, string | undefined>>): boolean {
  const { NO_COLOR: noColor } = env
  return stream.isTTY === true && (noColor === undefined || noColor === '') && env['TERM'] !== 'dumb'
}

const levelColours: Readonly<Record<string, string>> = { debug: '2', info: '36', warn: '33', error: '31' }

/**
 * Formats a JSON line as text: the time of day, the level and the message, then the other members as `name=value`.
 * Returns any other line unchanged, except for escaped control characters.
 */
export function textLine(line: string, { colour }: { readonly colour: boolean }): string {
  let read: unknown
  try {
    read = JSON.parse(line)
  } catch {
    return `${printable(line.trimEnd())}\n`
  }
  if (typeof read !== 'object' || read === null) return `${printable(line.trimEnd())}\n`
  const { time, level, message, name: _name, ...rest } = read as Readonly<Record<string, unknown>>
  const paint = (code: string, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text)
  const label = textOf(level)
  const parts = [
    paint('2', textOf(time).slice(11, 23)),
    paint(levelColours[label] ?? '0', label.toUpperCase().padEnd(5)),
    printable(textOf(message)),
    ...Object.entries(rest).map(([name, value]) => `${paint('2', `${printable(name)}=`)}${shown(value)}`),
  ]
  return `${parts.join(' ').trim()}\n`
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Formats a value. Omits the quotes around a single plain word. */
function shown(value: unknown): string {
  if (typeof value === 'string')
    return /^[\w./:@%+,-]+$/.test(value) ? value : printable(JSON.stringify(value))
  return printable(JSON.stringify(value) ?? '')
}

/** Escapes hidden characters as in JSON. */
function printable(text: string): string {
  return text.replaceAll(hiddenInLine, unicodeEscape)
}
