/** Types for the catalog: the items that clients can use, and the backend behind each name. */
import type { MirroredArgument } from '../../../mcp/index.ts'
import type { CatalogEntry } from './entry.ts'
import type { ToolUi } from './tool-ui.ts'
import type { Perform } from '../operation.ts'
import type { ArgumentCheck, PinDigests, PinReason } from './pinning.ts'

export interface CatalogItem {
  /** Key of the item, which is the name of a tool or prompt, or the URI or template of a resource. */
  readonly key: string
  /** Key that the backend uses, if it differs from `key`. */
  readonly original?: string
  /** Complete definition that clients see. */
  readonly json: Buffer
  /** Definition that session-era clients see, if it differs from `json`. */
  readonly sessionJson?: Buffer
  /** Digests of the parts on which clients rely. Present only if pinning is enabled. */
  readonly pin?: PinDigests
  /** Reason why the item is not offered. */
  readonly refused?: Refused
  /** Checks the arguments of each call. Present only if the approved definition replaces a changed definition. */
  readonly check?: ArgumentCheck
}

/** A pinning reason or a guardrail rule. */
export type Refused = PinReason | { readonly guardrail: string }

export interface ToolItem extends CatalogItem {
  readonly mirrored: readonly MirroredArgument[]
  /** The tool's user interface. Present only if MCP Apps is enabled. */
  readonly ui?: ToolUi
}

/** A name that is withheld from clients. Calls to this name are rejected and do not reach any other backend. */
export interface RefusedEntry {
  readonly key: string
  readonly backend: string
  readonly original: string
  readonly refused: Refused
}

export interface RefusedTool extends RefusedEntry {
  /** The backend's definition, which only operators may see. */
  readonly json: Buffer
}

/**
 * True if an item keeps its name reserved. A refused item keeps its name reserved if it was approved or if guardrails
 * refuse it, so that calls do not reach another backend. An item that was never approved does not reserve its name.
 */
export function holdsName(refused: Refused | undefined): boolean {
  return refused !== 'tool_new' && refused !== 'no_lock'
}

export interface ToolEntry extends CatalogEntry {
  /** The tool's name with overrides, but without a prefix. Filters and workflows use this name. */
  readonly base: string
  /** False if clients can neither list nor call the tool, but workflows can. */
  readonly advertised: boolean
  readonly mirrored: readonly MirroredArgument[]
  readonly annotations: Readonly<Record<string, unknown>>
  /** The tool's user interface. Present only if MCP Apps is enabled. */
  readonly ui?: ToolUi
  /** Runs one of Gatehouse's own tools, which have an empty `backend`. */
  readonly run?: Perform
}

/** Tools that workflows can use even though clients cannot call them by name. */
export interface UnlistedTools {
  /** Tools that lost their name to another backend. The map key is `workload.tool`. */
  readonly unnamed: readonly ToolEntry[]
  /** The most recently listed tools of backends that are down. */
  readonly absent: readonly ToolEntry[]
}

/**
 * Builds Gatehouse's own tools from the backends' tools. The catalog calls this pure function once. A built tool does
 * not replace a listed tool with the same name.
 */
export type Composer = (
  tools: ReadonlyMap<string, ToolEntry>,
  unlisted?: UnlistedTools,
) => {
  readonly entries: readonly ToolEntry[]
  readonly problems: readonly CatalogNotice[]
}

export type ItemKind = 'tools' | 'resources' | 'templates' | 'prompts'
/** The lists that clients read in pages. */
export type PagedKind = ItemKind | 'skills'

/** A notice for operators about a name that could not be offered unchanged. */
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
