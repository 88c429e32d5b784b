/**
 * Finds backend names in a virtual server's settings that match no backend. A misspelled name causes no other error,
 * but leaves a backend without its credentials, timeout or filter. Also checks upstream filters.
 */
import type { UpstreamFilter } from '../generated/types.ts'
import { prefixedName } from './reserved-tools.ts'
import { fieldsOf, listOf } from './fields.ts'
import { below, nearest, type Violation } from './violations.ts'

/** The settings that contain backend names, from the runtime's file or `spec.config`. Values may be invalid. */
export interface NamingSettings {
  readonly outgoingAuth?: unknown
  readonly aggregation?: unknown
  readonly operational?: unknown
  readonly extensions?: unknown
  readonly guardrails?: unknown
  readonly webhooks?: unknown
  readonly compositeTools?: unknown
  readonly quotas?: unknown
  readonly costs?: unknown
  /** Workflows from other documents. */
  readonly definitions?: readonly WorkflowDefinition[]
  /** Backend names in policies, from `namedOrigins`. */
  readonly origins?: readonly NamedPlace[]
  /** Webhooks from another document. */
  readonly webhookConfig?: WebhookDefinition | undefined
}

/** Webhooks from another document. The path of a violation is the path of the reference to that document. */
export interface WebhookDefinition {
  readonly path: string
  readonly title: string
  readonly webhooks: unknown
}

/**
 * A workflow from another document. The path of a violation in its steps is the path of the reference to that document.
 */
export interface WorkflowDefinition {
  /** Path to the reference. */
  readonly path: string
  /** Name of the other document, for messages. */
  readonly title: string
  readonly steps: unknown
}

export interface UnknownBackend extends Violation {
  /** The most similar known name. */
  readonly similar?: string
}

/** Limits the time for finding similar names. */
const maxSuggestions = 3
const maxCompared = 100
/** Limits the length of the result; the last line reports the number of omitted violations. */
const maxViolations = 50

/** Returns one violation for each name in `settings` that `known` does not contain. Paths start with `parent`. */
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
  const violations = unknown.slice(0, maxViolations).map(({ path, name, within }): UnknownBackend => {
    const where = within === undefined ? '' : `${within}: `
    // The name of a known backend is invalid only as the tool of a step.
    if (names.has(name))
      return { path, message: `${where}"${name}" is a backend, not a tool: write "${name}.TOOL"` }
    const message = `${where}unknown backend ${JSON.stringify(name)}`
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

/** A backend name and the path at which it occurs. */
export interface NamedPlace {
  readonly path: string
  readonly name: string
}

interface Named extends NamedPlace {
  /** Location of the name in another document. */
  readonly within?: string
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
    ...listOf(settings.quotas).flatMap((quota, i) =>
      named(fieldsOf(fieldsOf(quota)['match'])['backend'], `${below(at('quotas'), i)}.match.backend`),
    ),
    ...keysOf(settings.costs, at('costs')).map(({ path, name }) => ({
      path,
      name: name.split('/', 1)[0] ?? '',
    })),
    ...listOf(fieldsOf(settings.extensions)['custom']).flatMap((extension, i) =>
      named(fieldsOf(extension)['backend'], `${below(at('extensions', 'custom'), i)}.backend`),
    ),
    ...ruleNames(settings.guardrails, at('guardrails')),
    ...ruleNames(settings.webhooks, at('webhooks')),
    ...sharedNames(settings.webhookConfig),
    ...(settings.origins ?? []).map(({ path, name }) => ({ path, name })),
  ]
}

function sharedNames(definition: WebhookDefinition | undefined): readonly Named[] {
  if (!definition) return []
  const { path, title, webhooks } = definition
  return ruleNames(webhooks, 'spec').map((one) => ({ ...one, path, within: `${title}: ${one.path}` }))
}

/**
 * Returns the backend names in lists whose entries have a `match` (guardrails and webhooks), and in their exceptions.
 */
function ruleNames(lists: unknown, path: string): readonly Named[] {
  return Object.entries(fieldsOf(lists)).flatMap(([list, rules]) =>
    listOf(rules).flatMap((rule, i) => {
      const at = below(below(path, list), i)
      const { match, except } = fieldsOf(rule)
      return [
        ...backendsOf(match, below(at, 'match')),
        ...listOf(except).flatMap((one, k) => backendsOf(one, below(below(at, 'except'), k))),
      ]
    }),
  )
}

function backendsOf(match: unknown, path: string): readonly Named[] {
  return listOf(fieldsOf(match)['backends']).flatMap((name, i) =>
    named(name, below(below(path, 'backends'), i)),
  )
}

/**
 * Returns the steps whose tool (`backend.tool` or the name that clients see) belongs to no known backend. Checks the
 * client name only when names start with the backend's name; otherwise any name may be valid.
 */
function stepNames(
  { aggregation, compositeTools, definitions = [] }: NamingSettings,
  known: ReadonlySet<string>,
  parent: string,
): readonly Named[] {
  const { conflictResolution = 'prefix', conflictResolutionConfig } = fieldsOf(aggregation)
  const format = fieldsOf(conflictResolutionConfig)['prefixFormat'] ?? '{workload}_'
  if (conflictResolution !== 'prefix' || typeof format !== 'string' || !format.startsWith('{workload}'))
    return []
  const starts = [...known].flatMap((name) => [`${name}.`, prefixedName(format, name, '')])
  const separator = format.slice('{workload}'.length)
  const at = below(parent, 'compositeTools')
  const inline = listOf(compositeTools).flatMap((workflow, i) =>
    toolsOf(fieldsOf(workflow)['steps'], below(below(at, i), 'steps')),
  )
  const referenced = definitions.flatMap(({ path, title, steps }) =>
    toolsOf(steps, 'spec.steps').map((tool) => ({ ...tool, path, within: `${title}: ${tool.path}` })),
  )
  return [...inline, ...referenced].flatMap(({ name: tool, ...place }) => {
    if (starts.some((start) => tool.startsWith(start))) return []
    const [dotted = ''] = tool.split('.', 1)
    const [prefixed = ''] = separator === '' ? [tool] : tool.split(separator, 1)
    return [{ ...place, name: dotted.length < tool.length ? dotted : prefixed }]
  })
}

/** Returns the tools that steps call, including inner steps. */
function toolsOf(steps: unknown, path: string): readonly Named[] {
  return listOf(steps).flatMap((step, i) => {
    const { tool, step: inner } = fieldsOf(step)
    const at = below(path, i)
    return [
      ...named(tool, below(at, 'tool')),
      ...named(fieldsOf(inner)['tool'], below(below(at, 'step'), 'tool')),
    ].filter(({ name }) => name !== '')
  })
}

function keysOf(map: unknown, path: string): readonly Named[] {
  return Object.keys(fieldsOf(map)).map((name) => ({ name, path: below(path, name) }))
}

function named(name: unknown, path: string): readonly Named[] {
  return typeof name === 'string' ? [{ name, path }] : []
}

/** The fields of an upstream provider that an upstream filter depends on. */
interface FilteredUpstream {
  readonly name: string
  /** False for type oauth2 without `userInfo` and `identityFromToken`. */
  readonly hasIdentity: boolean
}

/**
 * Returns the errors in an upstream filter: unknown names, and a first provider whose users have no groups. Paths are
 * relative to the filter.
 */
export function upstreamFilterViolations(
  { rules, defaultUpstreams = [] }: UpstreamFilter,
  upstreams: readonly FilteredUpstream[],
): readonly Violation[] {
  const lists = [
    ...rules.map(
      ({ upstreamProviders }, index) => [`rules[${index}].upstreamProviders`, upstreamProviders] as const,
    ),
    ['defaultUpstreams', defaultUpstreams] as const,
  ]
  const unknown = lists.flatMap(([list, names]) =>
    names.flatMap((name, index) =>
      upstreams.some((upstream) => upstream.name === name)
        ? []
        : [
            {
              path: `${list}[${index}]`,
              message: `must be the name of one of upstreamProviders, found "${name}"`,
            },
          ],
    ),
  )
  if (upstreams[0]?.hasIdentity !== false) return unknown
  const message = `cannot be read, because upstream ${upstreams[0].name} has neither userInfo nor identityFromToken`
  return [{ path: 'claim', message }, ...unknown]
}
