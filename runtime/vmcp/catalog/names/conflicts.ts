/** Reports each naming conflict and alias in the current catalogs once. Also reports when a conflict is resolved. */
import { type Events, visibleText } from '../../../observe/index.ts'
import type { Aliases } from './aliases.ts'
import type { Catalog } from '../catalog.ts'
import type { CatalogNotice } from '../../model/catalog/entries.ts'

type Conflict = Exclude<CatalogNotice['kind'], 'malformed' | 'withheld'>

/** Advice for each kind of conflict. */
const fixes: Readonly<Record<Conflict, string>> = {
  collision:
    'rename the tool with an aggregation.tools override or with prefixFormat, or rename the workflow in its definition',
  same_address:
    'Gatehouse cannot change addresses: configure different addresses in the backends, or remove one backend from the group',
  conflict:
    'rename all but one with aggregation.tools overrides, or choose a different conflictResolution or prefixFormat',
  shadowed: 'to offer the item as well, rename it with an aggregation.tools override',
  reserved: 'rename the tool with an aggregation.tools override',
  long_name: 'set aggregation.maxToolNameLength, or rename the tool with an aggregation.tools override',
  unused_override: 'correct the name in aggregation.tools overrides, or remove the override',
  workflow: 'correct the workflow, or check why a tool that it uses is not offered',
}

/** Maximum number of reported conflicts. `/status` contains all conflicts. */
const maxConflicts = 100

export class Conflicts {
  readonly #events: Events
  #reported: ReadonlyMap<string, CatalogNotice> = new Map()
  readonly #aliases = new Set<string>()

  constructor(events: Events) {
    this.#events = events
  }

  /** Compares the catalogs in use with the reported conflicts. */
  update(catalogs: () => Iterable<Catalog>): void {
    const found = new Map<string, CatalogNotice>()
    for (const { problems } of catalogs()) {
      for (const problem of problems) {
        if (found.size >= maxConflicts) break
        if (isConflict(problem.kind)) found.set(`${problem.kind} ${problem.subject}`, problem)
      }
    }
    for (const [key, problem] of found)
      if (!this.#reported.has(key)) this.#report(problem, { resolved: false })
    for (const [key, problem] of this.#reported)
      if (!found.has(key)) this.#report(problem, { resolved: true })
    this.#reported = found
    for (const { aliases } of catalogs()) this.#noteAliases(aliases)
  }

  #noteAliases({ aliasByName }: Aliases): void {
    for (const [name, alias] of aliasByName) {
      if (this.#aliases.size >= maxConflicts) return
      if (this.#aliases.has(alias)) continue
      this.#aliases.add(alias)
      this.#events.emit('tool_alias', { item: visibleText(name), alias: visibleText(alias) })
    }
  }

  #report({ kind, subject, message }: CatalogNotice, { resolved }: { readonly resolved: boolean }): void {
    if (!isConflict(kind)) return
    this.#events.emit('name_conflict', { kind, item: subject, problem: message, fix: fixes[kind], resolved })
  }
}

/** Excludes a backend's unusable items, which are reported when its lists are read. */
function isConflict(kind: CatalogNotice['kind']): kind is Conflict {
  return kind !== 'malformed' && kind !== 'withheld'
}
