/**
 * Formats a tool call's arguments for a span: without credentials, and with at most 100 characters per value and 200 in
 * total.
 * Source: reference limits of tool argument recording; OpenTelemetry generative AI conventions (opt-in attribute).
 */
import type { MaskText } from '../record-mask.ts'
import { isSecretName, redactText } from '../redact.ts'

const sensitive = /password|token|secret|key|auth|credential|private/i
const maxValueChars = 100
const maxAllChars = 200
/** Maximum size of parsed arguments. */
const maxParsedBytes = 65_536

/** Formats arguments as `name=value, …` in call order. */
export function describeArguments(raw: Buffer, mask: MaskText = asItIs): string {
  if (raw.length > maxParsedBytes) return `[${raw.length} bytes]`
  let args: unknown
  try {
    args = JSON.parse(raw.toString())
  } catch {
    return '[malformed]'
  }
  if (typeof args !== 'object' || args === null) return '[malformed]'
  const parts: string[] = []
  let length = 0
  for (const [name, value] of Object.entries(args)) {
    const part = `${cut(mask(name), maxValueChars)}=${isSensitive(name) ? '[redacted]' : describe(value, mask)}`
    parts.push(part)
    length += part.length + 2
    if (length > maxAllChars) break
  }
  return cut(parts.join(', '), maxAllChars)
}

/** True for argument names that are omitted from spans, including names that might not refer to a credential. */
export function isSensitive(name: string): boolean {
  return sensitive.test(name) || isSecretName(name)
}

function describe(value: unknown, mask: MaskText): string {
  if (typeof value === 'string') return cut(redactText(mask(value)), maxValueChars)
  if (Array.isArray(value)) return `[${value.length} items]`
  if (typeof value === 'object' && value !== null) return `{${Object.keys(value).length} members}`
  return typeof value === 'number' ? mask(String(value)) : String(value)
}

function cut(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars - 1)}…`
}

function asItIs(text: string): string {
  return text
}
