/**
 * Normalizes a pod template to the form that the API server stores, so that a literal comparison finds no difference.
 * Quantities become canonical, and empty environment values, empty lists and nulls are dropped.
 */
import { type Fields, fieldsOf, isFields } from '../base/kube.ts'
import { canonicalQuantity } from './quantity.ts'

/** Fields that are meaningful even when empty. */
const meaningfulWhenEmpty = new Set([
  'emptyDir',
  'securityContext',
  'podSelector',
  'namespaceSelector',
  'labelSelector',
])

export function normalizeTemplate(template: Fields): Fields {
  return fieldsOf(normalizeValue(template, ''))
}

function normalizeValue(value: unknown, key: string): unknown {
  if (Array.isArray(value))
    return value.map((item: unknown) => normalizeValue(item, '')).filter((item) => item !== undefined)
  if (!isFields(value)) return value === null ? undefined : value
  const entries = Object.entries(value).flatMap(([name, item]): [string, unknown][] => {
    const next = normalizeField(key, name, item)
    return next === undefined ? [] : [[name, next]]
  })
  return Object.fromEntries(entries)
}

function normalizeField(owner: string, name: string, item: unknown): unknown {
  if (isAmount(owner, name) && (typeof item === 'string' || typeof item === 'number'))
    return canonicalQuantity(item)
  if (name === 'value' && item === '') return undefined
  const next = normalizeValue(item, name)
  if (Array.isArray(next) && next.length === 0) return undefined
  if (isFields(next) && Object.keys(next).length === 0 && !meaningfulWhenEmpty.has(name)) return undefined
  return next
}

function isAmount(owner: string, name: string): boolean {
  return owner === 'limits' || owner === 'requests' || name === 'sizeLimit'
}
