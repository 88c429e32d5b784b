/**
 * Applies one set of rules for hidden characters to lists. Each item is scanned once, regardless of the number of
 * clients. Names and values that programs compare (`enum` values, patterns) cannot be changed. An item is refused if
 * one of these names or values contains a match.
 *
 * This module processes the items that pinning offers. Pinning itself compares the backend's original data.
 */
import { atOnce, type TurnWork } from '../../../../mcp/index.ts'
import type { Listing } from '../../../catalog/listing.ts'
import type { CatalogItem, ItemKind } from '../../../model/catalog/entries.ts'
import { ErrorCollector, type ListErrors } from '../../../catalog/items/errors.ts'
import { type GuardrailFinding, scanValue } from '../scan/scan-value.ts'
import { type ActiveRule, type CompiledRule, rulesFor, type Subject, type PointerPattern } from '../rules.ts'

/** The scan result for an item or for the server's instructions. */
interface Marked {
  readonly bytes: Buffer
  readonly findings: readonly GuardrailFinding[]
  /** The rule that withholds the item from clients. */
  readonly refusedBy: string | undefined
  /** The error from a failed scan. */
  readonly error?: unknown
}

/** A finding in a backend's list. */
export interface ListFinding {
  readonly method: string
  readonly finding: GuardrailFinding
}

export interface MarkedListing {
  /** Number of findings for each list and rule. */
  readonly findings: readonly ListFinding[]
  readonly withheld: ListErrors
  /** The first error from a failed scan. */
  readonly error: unknown
}

/** Methods with which clients use each kind of item. The method determines which rules apply. */
const calls: Readonly<Record<ItemKind, string>> = {
  tools: 'tools/call',
  prompts: 'prompts/get',
  resources: 'resources/read',
  templates: 'resources/read',
}
const lists: Readonly<Record<ItemKind, string>> = {
  tools: 'tools/list',
  prompts: 'prompts/list',
  resources: 'resources/list',
  templates: 'resources/templates/list',
}
const kinds = Object.keys(lists) as readonly ItemKind[]
const instructionsMethod = 'initialize'

const fixed: readonly PointerPattern[] = [
  ['name'],
  ['uri'],
  ['uriTemplate'],
  ['arguments', undefined, 'name'],
]
/** Schema members whose text programs compare literally. */
const compared: ReadonlySet<string> = new Set(
  'enum const pattern required format type $ref $id $anchor $dynamicRef $dynamicAnchor $schema'.split(' '),
)
/** Milliseconds after which the scan yields to other work. */
const turnMs = 5

export class MarkedLists {
  readonly #rules: readonly CompiledRule[]
  /** Scan results, cached for each immutable item. */
  readonly #items = new WeakMap<Buffer, Marked>()
  readonly #instructions = new WeakMap<Listing, { readonly text: string; readonly marked: Marked }>()

  constructor(rules: readonly CompiledRule[]) {
    this.#rules = rules
  }

  knows(listing: Listing): boolean {
    return this.#instructions.has(listing)
  }

  /** Scans all items and instructions in the listing. Never throws. */
  *prepare(listing: Listing): TurnWork<void> {
    let began = performance.now()
    for (const kind of kinds) {
      for (const item of listing[kind]) {
        for (const json of formsOf(item)) yield* this.#item(listing.backend, kind, item.key, json)
        if (performance.now() - began < turnMs) continue
        yield
        began = performance.now()
      }
    }
    yield* this.#say(listing, listing.server.instructions ?? '')
  }

  /** Returns the listing as clients see it. `offered` is the part of the listing that pinning allows. */
  apply(listing: Listing, offered: Listing): Listing {
    const { backend, server, violations } = offered
    const { instructions } = server
    const said = instructions && atOnce(this.#say(listing, instructions))
    const { withheld } = this.found(listing, offered)
    return {
      ...offered,
      tools: this.#marked(backend, 'tools', offered.tools),
      prompts: this.#marked(backend, 'prompts', offered.prompts),
      resources: this.#marked(backend, 'resources', offered.resources),
      templates: this.#marked(backend, 'templates', offered.templates),
      server: said ? { ...server, instructions: textOf(said) } : server,
      violations: { ...violations, problems: [...violations.problems, ...withheld.problems] },
    }
  }

  #marked<I extends CatalogItem>(backend: string, kind: ItemKind, items: readonly I[]): readonly I[] {
    return items.map((item) => this.#offered(backend, kind, item))
  }

  #offered<I extends CatalogItem>(backend: string, kind: ItemKind, item: I): I {
    if (item.refused !== undefined) return item
    const [json, sessionJson] = formsOf(item).map((form) => atOnce(this.#item(backend, kind, item.key, form)))
    const guardrail = json?.refusedBy ?? sessionJson?.refusedBy
    if (guardrail !== undefined) return { ...item, refused: { guardrail } }
    if (!json || (json.bytes === item.json && sessionJson?.bytes === item.sessionJson)) return item
    return { ...item, json: json.bytes, ...(sessionJson ? { sessionJson: sessionJson.bytes } : {}) }
  }

  /** Returns the findings in a listing. `offered` has the same meaning as in `apply`. */
  found(listing: Listing, offered: Listing = listing): MarkedListing {
    const sums = new Map<string, ListFinding>()
    const withheld = new ErrorCollector(listing.backend, 'withheld')
    let error: unknown
    const add = (method: string, marked: Marked | undefined): void => {
      error ??= marked?.error
      for (const finding of marked?.findings ?? []) {
        const key = `${method} ${finding.outcome} ${finding.rule}`
        const count = finding.count + (sums.get(key)?.finding.count ?? 0)
        sums.set(key, { method, finding: { ...finding, count } })
      }
    }
    for (const kind of kinds) {
      for (const { key, json, refused } of offered[kind]) {
        if (refused !== undefined) continue
        const marked = this.#items.get(json)
        add(lists[kind], marked)
        if (marked?.refusedBy !== undefined) withheld.leftOut(kind, key, refusing(marked.refusedBy))
      }
    }
    const said =
      offered.server.instructions === undefined ? undefined : this.#instructions.get(listing)?.marked
    add(instructionsMethod, said)
    if (said?.refusedBy !== undefined) withheld.instructionsLeftOut(refusing(said.refusedBy))
    return { findings: [...sums.values()], withheld: withheld.all, error }
  }

  *#item(backend: string, kind: ItemKind, original: string, json: Buffer): TurnWork<Marked> {
    const known = this.#items.get(json)
    if (known) return known
    const marked = yield* markedBy(this.#rules, { method: calls[kind], backend, original }, json)
    this.#items.set(json, marked)
    return marked
  }

  *#say(listing: Listing, text: string): TurnWork<Marked> {
    const known = this.#instructions.get(listing)
    if (known?.text === text) return known.marked
    const subject = { method: instructionsMethod, backend: listing.backend, original: undefined }
    const marked = yield* markedBy(this.#rules, subject, Buffer.from(JSON.stringify(text)))
    this.#instructions.set(listing, { text, marked })
    return marked
  }
}

/** Refuses an item that cannot be scanned. */
function* markedBy(rules: readonly CompiledRule[], subject: Subject, bytes: Buffer): TurnWork<Marked> {
  const active: readonly ActiveRule[] = rulesFor(rules, 'results', subject)
  const [first] = active
  if (!first) return { bytes, findings: [], refusedBy: undefined }
  try {
    return yield* scanValue(bytes, active, { fixed, compared }, undefined)
  } catch (error) {
    return { bytes, findings: [], refusedBy: first.name, error }
  }
}

function formsOf({ json, sessionJson }: CatalogItem): readonly Buffer[] {
  return sessionJson ? [json, sessionJson] : [json]
}

function textOf({ bytes, refusedBy }: Marked): string | undefined {
  return refusedBy === undefined ? String(JSON.parse(bytes.toString())) : undefined
}

function refusing(rule: string): string {
  return `guardrail ${rule} rejects hidden characters in the item`
}
