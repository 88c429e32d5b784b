/**
 * Tools that quotas and costs name and no backend offers: a misspelled name, or that which clients see, counts nothing.
 *
 * Says nothing about a backend whose lists are not known yet, and looks a moment after lists changed, once for a burst.
 */
import { below, formatViolations } from '../../../schemas/index.ts'
import type { VmcpConfig } from '../../config/index.ts'
import type { Events } from '../../observe/index.ts'
import type { Listing } from '../catalog/listing.ts'

interface Member {
  readonly listings: { all(): readonly Listing[] }
}

export interface UnmatchedParts {
  readonly events: Events
  readonly members: () => ReadonlyMap<string, Member>
}

type Naming = Pick<VmcpConfig, 'quotas' | 'costs'>

interface NamedTool {
  readonly path: string
  /** Undefined: any. */
  readonly backend: string | undefined
  readonly tool: string
}

const settleMs = 50
const maxProblems = 50

export class UnmatchedTools {
  readonly #parts: UnmatchedParts
  #named: readonly NamedTool[] = []
  #open: readonly string[] = []
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: UnmatchedParts) {
    this.#parts = parts
  }

  /** Takes a configuration. */
  replace(config: Naming): void {
    this.#named = namedTools(config)
    this.changed()
  }

  /** Lists changed. */
  changed(): void {
    if (this.#closed || (this.#named.length === 0 && this.#open.length === 0)) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#tell()
    }, settleMs)
    this.#timer.unref()
  }

  #tell(): void {
    const { events, members } = this.#parts
    const before = this.#open
    this.#open = unmatched(this.#named, members())
    for (const problem of this.#open)
      if (!before.includes(problem)) events.emit('quota_unmatched', { problem, resolved: false })
    for (const problem of before)
      if (!this.#open.includes(problem)) events.emit('quota_unmatched', { problem, resolved: true })
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }
}

function namedTools({ quotas = [], costs = {} }: Naming): readonly NamedTool[] {
  const matched = quotas.flatMap(({ match }, i) =>
    match?.tool === undefined
      ? []
      : [{ path: `${below('quotas', i)}.match.tool`, backend: match.backend, tool: match.tool }],
  )
  const priced = Object.keys(costs).flatMap((key) => {
    const slash = key.indexOf('/')
    if (slash < 0) return []
    return [{ path: below('costs', key), backend: key.slice(0, slash), tool: key.slice(slash + 1) }]
  })
  return [...matched, ...priced]
}

/** One line for each. A backend that does not exist is reported with the other names of backends. */
function unmatched(named: readonly NamedTool[], members: ReadonlyMap<string, Member>): readonly string[] {
  const known = new Map<string, ReadonlySet<string> | undefined>()
  const toolsOf = (name: string): ReadonlySet<string> | undefined => {
    if (!known.has(name)) known.set(name, offeredBy(members.get(name)))
    return known.get(name)
  }
  const isMissing = ({ backend, tool }: NamedTool): boolean => {
    const names = backend === undefined ? [...members.keys()] : [backend]
    return names.length > 0 && names.every((name) => toolsOf(name)?.has(tool) === false)
  }
  return named
    .filter(isMissing)
    .slice(0, maxProblems)
    .map(({ path, backend, tool }) => {
      const where = backend === undefined ? 'no backend offers' : `backend ${backend} does not offer`
      return formatViolations([{ path, message: `${where} a tool ${JSON.stringify(tool)}` }])
    })
}

/** Undefined: not known. */
function offeredBy(member: Member | undefined): ReadonlySet<string> | undefined {
  const listings = member?.listings.all() ?? []
  if (listings.length === 0) return undefined
  return new Set(listings.flatMap(({ tools }) => tools.map(({ key }) => key)))
}
