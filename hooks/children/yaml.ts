/**
 * Writes JSON values as block YAML with sorted keys. The same value always produces the same bytes.
 *
 * Supports maps, lists and scalars only. A scalar is plain when it is unambiguous for every YAML reader, and
 * double-quoted otherwise. Every sync writes one file, and a general YAML writer takes fifty times as long for a group
 * of five hundred backends.
 * Source: YAML 1.2; double-quoted scalars are a superset of JSON strings.
 */
import { byText } from '../../schemas/index.ts'
import { isFields } from '../base/kube.ts'

/** Formats a document whose root is a map. Omits undefined values. */
export function toYaml(value: Readonly<Record<string, unknown>>): string {
  const lines: string[] = []
  writeMap(lines, value, '', '')
  return `${lines.join('\n')}\n`
}

function writeMap(
  lines: string[],
  map: Readonly<Record<string, unknown>>,
  indent: string,
  first: string,
): void {
  const keys = Object.keys(map)
    .filter((key) => map[key] !== undefined)
    .sort(byText)
  for (const [index, key] of keys.entries()) {
    writeMember(lines, `${index === 0 && first !== '' ? first : indent}${scalar(key)}:`, map[key], indent)
  }
}

/** Writes ` value` on the line of `head`, or writes the value as a block below that line. */
function writeMember(lines: string[], head: string, value: unknown, indent: string): void {
  if (Array.isArray(value) && value.length > 0) {
    lines.push(head)
    for (const item of value as readonly unknown[]) writeItem(lines, item, `${indent}  `)
  } else if (isFields(value) && hasMembers(value)) {
    lines.push(head)
    writeMap(lines, value, `${indent}  `, '')
  } else lines.push(`${head} ${scalar(value)}`)
}

function writeItem(lines: string[], item: unknown, indent: string): void {
  if (isFields(item) && hasMembers(item)) writeMap(lines, item, `${indent}  `, `${indent}- `)
  else if (Array.isArray(item) && item.length > 0) {
    lines.push(`${indent}-`)
    for (const inner of item as readonly unknown[]) writeItem(lines, inner, `${indent}  `)
  } else lines.push(`${indent}- ${scalar(item)}`)
}

function hasMembers(map: Readonly<Record<string, unknown>>): boolean {
  return Object.values(map).some((value) => value !== undefined)
}

const plain = /^[A-Za-z/][A-Za-z0-9_./-]*$/
const reserved = /^(y|n|yes|no|true|false|on|off|null)$/i
const maxReserved = 5
// ASCII control characters, characters that YAML considers unprintable, and the additional line breaks that YAML
// defines.
const special = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g

function scalar(value: unknown): string {
  if (value === undefined) return 'null'
  if (
    typeof value === 'string' &&
    plain.test(value) &&
    !(value.length <= maxReserved && reserved.test(value))
  )
    return value
  if (Array.isArray(value)) return '[]'
  if (isFields(value)) return '{}'
  const text = JSON.stringify(value)
  return text.replaceAll(special, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
