/**
 * Short names for tools whose names are too long for clients. An alias is the start of the name, followed by a hash.
 *
 * An alias depends only on the tool's backend, its original name and its name in the catalog. The alias is therefore
 * the same after a restart, for every caller and for any order of backends, and never refers to another tool.
 * Internally, tools keep their names in the catalog. Only names in client messages are translated (call/aliases.ts). A
 * tool also gets an alias if its name equals another tool's alias.
 * Source: docs/reference/specification/virtual-server.md#aggregation.
 */
import { createHash } from 'node:crypto'
import { byText } from '../../../../schemas/index.ts'

export interface Aliases {
  /** Aliases, keyed by name in the catalog. */
  readonly aliasByName: ReadonlyMap<string, string>
  /** Names in the catalog, keyed by alias. */
  readonly nameByAlias: ReadonlyMap<string, string>
}

export interface NamedTool {
  readonly key: string
  readonly backend: string
  readonly original: string
}

/** Returns a deterministic hash for a tool. `attempt` selects an alternative hash. */
export type AliasHash = (named: NamedTool, attempt: number) => string

const hashLength = 10
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'
const aliasEnd = new RegExp(`_[a-z2-7]{${hashLength}}$`)

const noAliases: Aliases = { aliasByName: new Map(), nameByAlias: new Map() }

/**
 * Returns the aliases of names longer than `limit` characters. With `limit` 0, there are no aliases. Names must be
 * unique.
 */
export function aliasesOf(all: readonly NamedTool[], limit: number, hashOf: AliasHash = shortHash): Aliases {
  const long = limit === 0 ? [] : all.filter(({ key }) => key.length > limit)
  if (long.length === 0) return noAliases
  const aliasByName = new Map<string, string>()
  const nameByAlias = new Map<string, string>()
  const take = (one: NamedTool): void => {
    for (let attempt = 0; ; attempt++) {
      const alias = `${stemOf(one.key, limit)}_${hashOf(one, attempt)}`
      if (nameByAlias.has(alias) || alias === one.key) continue
      aliasByName.set(one.key, alias)
      nameByAlias.set(alias, one.key)
      return
    }
  }
  for (const one of long.sort((a, b) => byText(a.key, b.key))) take(one)
  const byKey = new Map(all.map((one) => [one.key, one]))
  // The loop may add aliases, because an added alias may in turn be another tool's name.
  for (const alias of nameByAlias.keys()) {
    const own = byKey.get(alias)
    if (own) take(own)
  }
  return { aliasByName, nameByAlias }
}

/** Returns false if a name's form shows that the name is not an alias. */
export function mayBeAlias(name: string, limit: number): boolean {
  return limit > 0 && name.length <= limit && name.length >= limit - 1 && aliasEnd.test(name)
}

/** Returns the start of a name for use in an alias. Does not split a character. */
export function stemOf(name: string, limit: number): string {
  const cut = name.slice(0, limit - hashLength - 1)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}

function shortHash({ key, backend, original }: NamedTool, attempt: number): string {
  const digest = createHash('sha256')
    .update(`gatehouse.alias.v1\0${attempt}\0`)
    .update(JSON.stringify([backend, original, key]))
    .digest()
  return Array.from(digest.subarray(0, hashLength), (byte) => alphabet[byte & 31]).join('')
}
