/**
 * The tools and pages of MCP Apps in one catalog. An app calls the tools of its own server under their original names,
 * so the index finds tools by these names.
 * Source: MCP Apps; docs/guides/apps.md.
 */
import type { ToolEntry } from '../../model/catalog/entries.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import { isUiAddress } from './ui-addresses.ts'

/** The part of a catalog that the index reads. */
interface IndexedCatalog {
  readonly tools: ReadonlyMap<string, ToolEntry>
  readonly resources: ReadonlyMap<string, CatalogEntry>
}

export class AppIndex {
  /** True if a tool has a page or a visibility. */
  readonly hasApps: boolean
  /** True if the catalog contains tools that only apps use. */
  readonly hasAppOnlyTools: boolean
  readonly #byOriginal = new Map<string, ToolEntry[]>()
  readonly #backendByPage = new Map<string, string>()
  readonly #pages = new Map<string, string | undefined>()

  constructor({ tools, resources }: IndexedCatalog) {
    const listed = [...tools.values()].filter(({ advertised }) => advertised)
    const all = listed.filter(({ ui }) => ui)
    this.hasApps = all.length > 0
    this.hasAppOnlyTools = all.some(({ ui }) => ui?.isForModel === false)
    const withPages = all.filter(({ ui }) => isUiAddress(ui?.page ?? ''))
    for (const { backend, ui } of withPages) this.#backendByPage.set(ui?.page ?? '', backend)
    const backends = new Set(withPages.map(({ backend }) => backend))
    for (const tool of listed) {
      if (!backends.has(tool.backend) || tool.ui?.isForApp === false) continue
      const known = this.#byOriginal.get(tool.original)
      if (known) known.push(tool)
      else this.#byOriginal.set(tool.original, [tool])
    }
    for (const { key, original } of resources.values()) {
      if (key === original) continue
      // An address that several backends use has no single owner.
      this.#pages.set(original, this.#pages.has(original) ? undefined : key)
    }
  }

  /** Returns the tools that apps may call under this original name. */
  toolsNamed(original: string): readonly ToolEntry[] {
    return this.#byOriginal.get(original) ?? []
  }

  /** Returns the backend whose tool has this page, for pages that are not in the list of resources. */
  backendOfPage(address: string): string | undefined {
    return this.#backendByPage.get(address)
  }

  /** Returns the client address for an address that exactly one backend uses. */
  addressOf(original: string): string | undefined {
    return this.#pages.get(original)
  }
}
