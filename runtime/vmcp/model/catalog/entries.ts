/** Shapes of the catalog: what clients can reach, and how each name leads to a backend. */
import type { MirroredArgument } from '../../../mcp/index.ts'
import type { CatalogEntry } from './entry.ts'
import type { Perform } from '../operation.ts'
import type { ArgumentCheck, PinDigests, PinReason } from './pinning.ts'

export interface CatalogItem {
  /** Name of a tool or prompt, URI of a resource, template of a resource template. */
  readonly key: string
  /** The whole item as it is offered. */
  readonly json: Buffer
  /** As it is offered to clients of the session era, where that is another form. */
  readonly sessionJson?: Buffer
  /** Digests of what clients rely on, where pinning is on. */
  readonly pin?: PinDigests
  /** What keeps it from being offered. */
  readonly refused?: Refused
  /** Arguments of a call must pass it: the approved definition stands in for a changed one. */
  readonly check?: ArgumentCheck
}

/** Pinning, with its reason, or a rule of the guardrails. */
export type Refused = PinReason | { readonly guardrail: string }

export interface ToolItem extends CatalogItem {
  readonly mirrored: readonly MirroredArgument[]
}

/** A name that is withheld from clients: a call of it is refused, and leads nowhere else. */
export interface RefusedEntry {
  readonly key: string
  readonly backend: string
  readonly original: string
  readonly refused: Refused
}

export interface RefusedTool extends RefusedEntry {
  /** What the backend offers: for people, never for clients. */
  readonly json: Buffer
}

/**
 * What was approved holds its name while it is refused, so that a call leads to no other backend; so does what guardrails
 * refuse. What never was approved has no claim to a name, and takes none away from others.
 */
export function holdsName(refused: Refused | undefined): boolean {
  return refused !== 'tool_new' && refused !== 'no_lock'
}

export interface ToolEntry extends CatalogEntry {
  /** Name after override, before prefix: what filters and workflows use. */
  readonly base: string
  /** False: not listed and not callable by clients, but reachable for workflows. */
  readonly advertised: boolean
  readonly mirrored: readonly MirroredArgument[]
  readonly annotations: Readonly<Record<string, unknown>>
  /** Carries out a call when the tool is the gateway's own; `backend` is empty then. */
  readonly run?: Perform
}

/** Tools that clients cannot call by name, but that workflows can use. */
export interface UnlistedTools {
  /** Tools whose name another backend has taken. Their key is `workload.tool`. */
  readonly unnamed: readonly ToolEntry[]
  /** The last listed tools of backends that are down. */
  readonly absent: readonly ToolEntry[]
}

/**
 * Makes tools of the gateway's own out of those of the backends; asked once for each catalog. Must be pure. A name that
 * a listed tool has already is not taken.
 */
export type Composer = (
  tools: ReadonlyMap<string, ToolEntry>,
  unlisted?: UnlistedTools,
) => {
  readonly entries: readonly ToolEntry[]
  readonly problems: readonly CatalogNotice[]
}

export type ItemKind = 'tools' | 'resources' | 'templates' | 'prompts'

/** Something an operator should know: a name that could not be offered as it stands. */
export interface CatalogNotice {
  readonly kind:
    | 'collision'
    | 'same_address'
    | 'conflict'
    | 'shadowed'
    | 'reserved'
    | 'long_name'
    | 'unused_override'
    | 'workflow'
    | 'malformed'
    | 'withheld'
  readonly subject: string
  readonly message: string
}
