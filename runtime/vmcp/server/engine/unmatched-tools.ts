/**
 * Reports tools that quotas, costs, guardrails, webhooks or policies refer to but that no backend offers. A rule has no
 * effect if its tool name is misspelled or is the name that clients see.
 *
 * Skips backends that have not been listed yet. Checks shortly after lists have changed, once for each burst of
 * changes.
 */
import { namedOrigins } from '../../../../schemas/cedar/index.ts'
import { below, formatViolations, type Guardrails, type RuntimeWebhook } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { Listing } from '../../catalog/listing.ts'

interface Member {
  readonly listings: { all(): readonly Listing[] }
}

export interface UnmatchedParts {
  readonly events: Events
  readonly members: () => ReadonlyMap<string, Member>
}

type Naming = Pick<
  VmcpConfig,
  'quotas' | 'costs' | 'guardrails' | 'webhooks' | 'compositeTools' | 'incomingAuth'
>

interface NamedTool {
  readonly path: string
  /** Names of the backends to check. Undefined for all backends. */
  readonly backends: readonly string[] | undefined
  readonly tool: string
}

const settleMs = 50
const maxProblems = 50

export class UnmatchedTools {
  readonly #parts: UnmatchedParts
  #named: readonly NamedTool[] = []
  #reported: readonly string[] = []
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: UnmatchedParts) {
    this.#parts = parts
  }

  replace(config: Naming): void {
    this.#named = namedTools(config)
    this.scheduleCheck()
  }

  /** Checks the tools after a short pause. The engine calls this method after lists have changed. */
  scheduleCheck(): void {
    if (this.#closed || (this.#named.length === 0 && this.#reported.length === 0)) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#report()
    }, settleMs)
    this.#timer.unref()
  }

  #report(): void {
    const { events, members } = this.#parts
    const before = this.#reported
    this.#reported = findUnmatched(this.#named, members())
    for (const problem of this.#reported)
      if (!before.includes(problem)) events.emit('tool_unmatched', { problem, resolved: false })
    for (const problem of before)
      if (!this.#reported.includes(problem)) events.emit('tool_unmatched', { problem, resolved: true })
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }
}

function namedTools({
  quotas = [],
  costs = {},
  guardrails,
  webhooks,
  compositeTools = [],
  incomingAuth,
}: Naming): readonly NamedTool[] {
  const matched = quotas.flatMap(({ match }, i) =>
    match?.tool === undefined
      ? []
      : [
          {
            path: `${below('quotas', i)}.match.tool`,
            backends: match.backend === undefined ? undefined : [match.backend],
            tool: match.tool,
          },
        ],
  )
  const priced = Object.keys(costs).flatMap((key) => {
    const slash = key.indexOf('/')
    if (slash < 0) return []
    return [{ path: below('costs', key), backends: [key.slice(0, slash)], tool: key.slice(slash + 1) }]
  })
  // Rules for all backends also apply to workflows, which no backend offers.
  const workflows = new Set(compositeTools.map(({ name }) => name))
  const guarded = [
    ...(guardrails?.mark ?? []).flatMap((rule, i) => namedByRule(rule, below('guardrails.mark', i))),
    ...(guardrails?.redact ?? []).flatMap((rule, i) => namedByRule(rule, below('guardrails.redact', i))),
    ...(guardrails?.sizes ?? []).flatMap((rule, i) => namedByRule(rule, below('guardrails.sizes', i))),
    ...(webhooks?.mutating ?? []).flatMap((one, i) => namedByRule(one, below('webhooks.mutating', i))),
    ...(webhooks?.validating ?? []).flatMap((one, i) => namedByRule(one, below('webhooks.validating', i))),
  ]
  return [
    ...matched,
    ...priced,
    ...namedByPolicies(incomingAuth),
    ...guarded.filter(({ backends, tool }) => backends !== undefined || !workflows.has(tool)),
  ]
}

function namedByPolicies({ authz }: VmcpConfig['incomingAuth']): readonly NamedTool[] {
  if (authz?.type !== 'cedar') return []
  return namedOrigins(authz, 'incomingAuth.authz').flatMap(({ path, name, tool }) =>
    tool === undefined ? [] : [{ path, backends: [name], tool }],
  )
}

type GuardrailRule = Pick<NonNullable<Guardrails['redact' | 'sizes' | 'mark']>[number], 'match' | 'except'>
type Rule = GuardrailRule | (Pick<RuntimeWebhook, 'match'> & { readonly except?: undefined })

function namedByRule({ match, except = [] }: Rule, at: string): readonly NamedTool[] {
  const of = (path: string, tools: readonly string[] = [], backends?: readonly string[]) =>
    tools.map((tool, k) => ({ path: below(path, k), backends, tool }))
  return [
    ...of(`${at}.match.tools`, match?.tools, match?.backends),
    ...except.flatMap(({ tools, backends = match?.backends }, k) =>
      of(`${below(`${at}.except`, k)}.tools`, tools, backends),
    ),
  ]
}

/** Lists the missing tools, one line each. `NameProblems` reports unknown backends. */
function findUnmatched(named: readonly NamedTool[], members: ReadonlyMap<string, Member>): readonly string[] {
  const known = new Map<string, ReadonlySet<string> | undefined>()
  const toolsOf = (name: string): ReadonlySet<string> | undefined => {
    if (!known.has(name)) known.set(name, toolNamesOf(members.get(name)))
    return known.get(name)
  }
  const isMissing = ({ backends, tool }: NamedTool): boolean => {
    const names = backends ?? [...members.keys()]
    return names.length > 0 && names.every((name) => toolsOf(name)?.has(tool) === false)
  }
  return named
    .filter(isMissing)
    .slice(0, maxProblems)
    .map(({ path, backends, tool }) => {
      const where = backends === undefined ? 'no backend offers' : notOfferedBy(backends)
      return formatViolations([{ path, message: `${where} a tool ${JSON.stringify(tool)}` }])
    })
}

function notOfferedBy(backends: readonly string[]): string {
  return backends.length === 1
    ? `backend ${backends[0]} does not offer`
    : `none of the backends ${backends.join(', ')} offers`
}

/** Returns a backend's tools. Returns undefined if the backend has not been listed yet. */
function toolNamesOf(member: Member | undefined): ReadonlySet<string> | undefined {
  const listings = member?.listings.all() ?? []
  if (listings.length === 0) return undefined
  return new Set(listings.flatMap(({ tools }) => tools.map(({ key }) => key)))
}
