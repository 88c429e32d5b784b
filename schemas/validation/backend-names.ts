/**
 * Names of backends in a virtual server's settings that no backend has. A misspelled name leaves a backend without its
 * credentials, its timeout or its filter, and nothing else shows it.
 */
import { fieldsOf } from './fields.ts'
import { below, nearest, type Violation } from './violations.ts'

/** The settings that name backends: those of the runtime's file, or of `spec.config`. May be of any state. */
export interface NamingSettings {
  readonly outgoingAuth?: unknown
  readonly aggregation?: unknown
  readonly operational?: unknown
  readonly compositeTools?: unknown
}

export interface UnknownBackend extends Violation {
  /** The known name that was probably meant. */
  readonly similar?: string
}

/** Bounds the time that the search for similar names takes. */
const maxSuggestions = 3
const maxCompared = 100
/** Bounds the length of the result; a last line says how many more there are. */
const maxViolations = 50

/** One violation for each name in `settings` that is not among `known`; paths start with `parent`. */
export function unknownBackends(
  settings: NamingSettings,
  known: Iterable<string>,
  parent = '',
): readonly UnknownBackend[] {
  const names = new Set(known)
  const unknown = [
    ...namesIn(settings, parent).filter(({ name }) => !names.has(name)),
    ...stepNames(settings, names, parent),
  ]
  const suggest = suggestions([...names].slice(0, maxCompared))
  const violations = unknown.slice(0, maxViolations).map(({ path, name }): UnknownBackend => {
    const message = `there is no backend ${JSON.stringify(name)}`
    const similar = suggest(name)
    return similar === undefined
      ? { path, message }
      : { path, message: `${message}; did you mean "${similar}"?`, similar }
  })
  const more = unknown.length - violations.length
  if (more > 0) violations.push({ path: parent, message: `${more} more names match no backend` })
  return violations
}

function suggestions(names: readonly string[]): (name: string) => string | undefined {
  const searched = new Map<string, string | undefined>()
  return (name) => {
    if (!searched.has(name) && searched.size < maxSuggestions) searched.set(name, nearest(name, names))
    return searched.get(name)
  }
}

interface Named {
  readonly path: string
  readonly name: string
}

function namesIn(settings: NamingSettings, parent: string): readonly Named[] {
  const at = (...keys: readonly string[]) => keys.reduce(below, parent)
  const { tools, conflictResolutionConfig } = fieldsOf(settings.aggregation)
  const order = listOf(fieldsOf(conflictResolutionConfig)['priorityOrder'])
  const orderPath = at('aggregation', 'conflictResolutionConfig', 'priorityOrder')
  return [
    ...keysOf(fieldsOf(settings.outgoingAuth)['backends'], at('outgoingAuth', 'backends')),
    ...order.flatMap((name, i) => named(name, below(orderPath, i))),
    ...listOf(tools).flatMap((entry, i) =>
      named(fieldsOf(entry)['workload'], below(below(at('aggregation', 'tools'), i), 'workload')),
    ),
    ...keysOf(
      fieldsOf(fieldsOf(settings.operational)['timeouts'])['perWorkload'],
      at('operational', 'timeouts', 'perWorkload'),
    ),
  ]
}

/**
 * Steps of workflows whose tool, `backend.tool` or the name that clients see, is of no known backend. Only where the name that
 * clients see starts with that of its backend; else any name may be right.
 */
function stepNames(
  { aggregation, compositeTools }: NamingSettings,
  known: ReadonlySet<string>,
  parent: string,
): readonly Named[] {
  const { conflictResolution = 'prefix', conflictResolutionConfig } = fieldsOf(aggregation)
  const format = fieldsOf(conflictResolutionConfig)['prefixFormat'] ?? '{workload}_'
  if (conflictResolution !== 'prefix' || typeof format !== 'string' || !format.startsWith('{workload}'))
    return []
  const starts = [...known].flatMap((name) => [`${name}.`, format.replaceAll('{workload}', name)])
  const separator = format.slice('{workload}'.length)
  const at = below(parent, 'compositeTools')
  return listOf(compositeTools).flatMap((workflow, i) =>
    listOf(fieldsOf(workflow)['steps']).flatMap((step, j) => {
      const path = below(below(below(at, i), 'steps'), j)
      const inner = fieldsOf(step)['step']
      return [
        ...toolNamed(fieldsOf(step)['tool'], below(path, 'tool')),
        ...toolNamed(fieldsOf(inner)['tool'], below(below(path, 'step'), 'tool')),
      ]
    }),
  )

  function toolNamed(tool: unknown, path: string): readonly Named[] {
    if (typeof tool !== 'string' || tool === '' || starts.some((start) => tool.startsWith(start))) return []
    const [dotted = ''] = tool.split('.', 1)
    const [prefixed = ''] = separator === '' ? [tool] : tool.split(separator, 1)
    return [{ path, name: dotted.length < tool.length ? dotted : prefixed }]
  }
}

function keysOf(map: unknown, path: string): readonly Named[] {
  return Object.keys(fieldsOf(map)).map((name) => ({ name, path: below(path, name) }))
}

function named(name: unknown, path: string): readonly Named[] {
  return typeof name === 'string' ? [{ name, path }] : []
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
