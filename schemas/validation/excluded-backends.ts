/**
 * Removes invalid backends and all of their settings from a virtual server's file, and keeps the rest. The hooks use
 * this module before they write a file, and the runtime uses it when it reads a file. One invalid setting excludes the
 * whole backend, because a backend without its credentials, filter or timeout would not behave as configured.
 */
import { type Fields, fieldsOf, isFields } from './fields.ts'
import { below, type Violation } from './violations.ts'

/** An excluded backend and the reasons for its exclusion. */
export interface ExcludedBackend {
  /** Name in the file, or `backends[0]` for a backend without a usable name. */
  readonly name: string
  /** Lines in the form `field: rule`, without values that could be secrets. */
  readonly problems: readonly string[]
  /** True when the document contains settings for this backend but does not declare it. */
  readonly isUnknown?: true
}

export interface Remaining<T> {
  /** A copy of the document without the excluded backends. */
  readonly document: T
  readonly excluded: readonly ExcludedBackend[]
}

/** A part of the document that belongs to one backend. */
interface Place {
  readonly path: string
  readonly backend: string
}

/** Returns the document without the invalid backends, or undefined when a violation does not concern a backend. */
export function withoutBroken<T>(document: T, violations: readonly Violation[]): Remaining<T> | undefined {
  const places = placesOf(document)
  const declared = new Set(partsOf(document).backends.map(nameOf))
  const found = new Map<string, string[]>()
  for (const { path, message } of violations) {
    const place = places.find((one) => isWithin(path, one.path))
    if (!place) return undefined
    const lines = found.get(place.backend) ?? []
    lines.push(`${path}: ${message}`)
    found.set(place.backend, lines)
  }
  const excluded = [...found].map(
    ([name, problems]): ExcludedBackend =>
      declared.has(name) ? { name, problems } : { name, problems, isUnknown: true },
  )
  return { document: without(document, new Set(found.keys())), excluded }
}

function placesOf(document: unknown): readonly Place[] {
  const { backends, entries, timeouts, tools } = partsOf(document)
  return [
    ...backends.map((item, i) => ({ path: below('backends', i), backend: nameOf(item, i) })),
    ...Object.keys(entries).map((name) => ({ path: below('outgoingAuth.backends', name), backend: name })),
    ...Object.keys(timeouts).map((name) => ({
      path: below('operational.timeouts.perWorkload', name),
      backend: name,
    })),
    ...tools.flatMap((item, i) => {
      const { workload } = fieldsOf(item)
      return typeof workload === 'string' && workload !== ''
        ? [{ path: below('aggregation.tools', i), backend: workload }]
        : []
    }),
  ]
}

function partsOf(document: unknown) {
  const { backends, outgoingAuth, operational, aggregation } = fieldsOf(document)
  const tools = fieldsOf(aggregation)['tools']
  return {
    backends: Array.isArray(backends) ? (backends as readonly unknown[]) : [],
    entries: fieldsOf(fieldsOf(outgoingAuth)['backends']),
    timeouts: fieldsOf(fieldsOf(fieldsOf(operational)['timeouts'])['perWorkload']),
    tools: Array.isArray(tools) ? (tools as readonly unknown[]) : [],
  }
}

function nameOf(item: unknown, index: number): string {
  const { name } = fieldsOf(item)
  return typeof name === 'string' && name !== '' ? name : below('backends', index)
}

function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`)
}

function without<T>(document: T, names: ReadonlySet<string>): T {
  const { backends, entries, timeouts, tools } = partsOf(document)
  return [
    [['backends'], backends.filter((item, i) => !names.has(nameOf(item, i)))],
    [['outgoingAuth', 'backends'], only(entries, names)],
    [['operational', 'timeouts', 'perWorkload'], only(timeouts, names)],
    [['aggregation', 'tools'], tools.filter((item) => !names.has(String(fieldsOf(item)['workload'])))],
  ].reduce((result, [path, value]) => replaced(result, path as readonly string[], value), document)
}

function only(map: Fields, names: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(map).filter(([name]) => !names.has(name)))
}

/** Returns a copy with the value at an existing path replaced. */
function replaced<T>(value: T, [key, ...rest]: readonly string[], leaf: unknown): T {
  if (key === undefined || !isFields(value) || value[key] === undefined) return value
  return { ...value, [key]: rest.length === 0 ? leaf : replaced(value[key], rest, leaf) }
}
