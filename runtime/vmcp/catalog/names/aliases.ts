/**
 * Short names for tools whose own name is longer than clients take: the beginning of the name, and a hash.
 *
 * An alias depends on backend, original and own name alone, so it is the same after a restart, for every caller, and in any
 * order of backends, and never comes to lead to another tool. Inside, tools keep their own names: only what clients see and
 * send is translated (middleware/aliases.ts). A tool whose own name is the alias of another one gets an alias too.
 * Source: docs/reference/specification/virtual-server.md#aggregation.
 */
import { createHash } from 'node:crypto'
import { byText } from '../../../../schemas/index.ts'

export interface Aliases {
  /** Alias by own name. */
  readonly of: ReadonlyMap<string, string>
  /** Own name by alias. */
  readonly names: ReadonlyMap<string, string>
}

export interface NamedTool {
  readonly key: string
  readonly backend: string
  readonly original: string
}

/** The hash of a tool, the same each time; `attempt` makes another one. */
export type AliasHash = (named: NamedTool, attempt: number) => string

const hashLength = 10
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'

const noAliases: Aliases = { of: new Map(), names: new Map() }

/** Aliases of the names of more than `limit` characters; `limit` 0: of none. Names must differ. */
export function aliasesOf(all: readonly NamedTool[], limit: number, hashOf: AliasHash = shortHash): Aliases {
  const long = limit === 0 ? [] : all.filter(({ key }) => key.length > limit)
  if (long.length === 0) return noAliases
  const of = new Map<string, string>()
  const names = new Map<string, string>()
  const take = (one: NamedTool): void => {
    for (let attempt = 0; ; attempt++) {
      const alias = `${stemOf(one.key, limit)}_${hashOf(one, attempt)}`
      if (names.has(alias) || alias === one.key) continue
      of.set(one.key, alias)
      names.set(alias, one.key)
      return
    }
  }
  for (const one of long.sort((a, b) => byText(a.key, b.key))) take(one)
  const byKey = new Map(all.map((one) => [one.key, one]))
  // Grows while it is gone through: the alias of such a tool may again be the name of another one.
  for (const alias of names.keys()) {
    const own = byKey.get(alias)
    if (own) take(own)
  }
  return { of, names }
}

/** Returns the pattern of aliases. A name that does not match is certainly no alias. `limit` 0 matches no name. */
export function aliasPattern(limit: number): RegExp {
  if (limit === 0) return /(?!)/
  const stem = limit - hashLength - 1
  return new RegExp(`^[^]{${stem - 1},${stem}}_[a-z2-7]{${hashLength}}$`)
}

/** What an alias has of a name. Half a character is left out. */
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
