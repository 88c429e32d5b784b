/**
 * Writes a pod template the way the API server stores it, so that a literal comparison finds no difference: canonical
 * quantities, no empty environment values, no empty lists, no null.
 */
import { type Fields, fieldsOf, isFields } from '../base/kube.ts'
import { canonicalQuantity } from './quantity.ts'

/** Members whose presence means something even when empty. */
const meaningfulWhenEmpty = new Set([
  'emptyDir',
  'securityContext',
  'podSelector',
  'namespaceSelector',
  'labelSelector',
])

export function normalizeTemplate(template: Fields): Fields {
  return fieldsOf(clean(template, ''))
}

function clean(value: unknown, key: string): unknown {
  if (Array.isArray(value))
    return value.map((item: unknown) => clean(item, '')).filter((item) => item !== undefined)
  if (!isFields(value)) return value === null ? undefined : value
  const entries = Object.entries(value).flatMap(([name, item]): [string, unknown][] => {
    const next = cleanMember(key, name, item)
    return next === undefined ? [] : [[name, next]]
  })
  return Object.fromEntries(entries)
}

function cleanMember(owner: string, name: string, item: unknown): unknown {
  if (isAmount(owner, name) && (typeof item === 'string' || typeof item === 'number'))
    return canonicalQuantity(item)
  if (name === 'value' && item === '') return undefined
  const next = clean(item, name)
  if (Array.isArray(next) && next.length === 0) return undefined
  if (isFields(next) && Object.keys(next).length === 0 && !meaningfulWhenEmpty.has(name)) return undefined
  return next
}

function isAmount(owner: string, name: string): boolean {
  return owner === 'limits' || owner === 'requests' || name === 'sizeLimit'
}
