/**
 * What to do with a configuration file in which single backends are wrong: each of them is taken out, with everything
 * that is said about it, and the rest is used. A backend that is wrong in one setting is out altogether: without its
 * credentials, its filter or its timeout it would be something else than what was asked for.
 */
import { below, type Fields, fieldsOf, isFields, type Violation } from '../../../schemas/index.ts'

/** A backend of the file that is not served, and why. */
export interface ExcludedBackend {
  /** As in the file; `backends[0]` where it has no usable name. */
  readonly name: string
  /** `field: rule` lines, without values that could be secret. */
  readonly problems: readonly string[]
}

export interface Remaining {
  /** A copy of the document without the excluded backends. */
  readonly document: unknown
  readonly excluded: readonly ExcludedBackend[]
}

/** One place of the document that is about one backend. */
interface Place {
  readonly path: string
  readonly backend: string
}

/** The document without the backends that have problems; undefined when a problem is about something else. */
export function withoutBroken(document: unknown, problems: readonly Violation[]): Remaining | undefined {
  const places = placesOf(document)
  const found = new Map<string, string[]>()
  for (const { path, message } of problems) {
    const place = places.find((one) => isWithin(path, one.path))
    if (!place) return undefined
    const lines = found.get(place.backend) ?? []
    lines.push(`${path}: ${message}`)
    found.set(place.backend, lines)
  }
  const excluded = [...found].map(([name, lines]) => ({ name, problems: lines }))
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

function without(document: unknown, names: ReadonlySet<string>): unknown {
  const { backends, entries, timeouts, tools } = partsOf(document)
  return [
    [['backends'], backends.filter((item, i) => !names.has(nameOf(item, i)))],
    [['outgoingAuth', 'backends'], only(entries, names)],
    [['operational', 'timeouts', 'perWorkload'], only(timeouts, names)],
    [['aggregation', 'tools'], tools.filter((item) => !names.has(String(fieldsOf(item)['workload'])))],
  ].reduce<unknown>((result, [path, value]) => replaced(result, path as readonly string[], value), document)
}

function only(map: Fields, names: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(map).filter(([name]) => !names.has(name)))
}

/** A copy with another value at the path, where there is one already. */
function replaced(value: unknown, [key, ...rest]: readonly string[], leaf: unknown): unknown {
  if (key === undefined) return leaf
  if (!isFields(value) || value[key] === undefined) return value
  return { ...value, [key]: replaced(value[key], rest, leaf) }
}
