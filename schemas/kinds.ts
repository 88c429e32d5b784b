/** The names of the kinds. */
import { bundle } from './validation/bundle.ts'
import type { Kinds } from './generated/types.ts'
import type { KindInfo } from './schema.ts'

export type KindName = keyof Kinds

export interface Kind extends KindInfo {
  readonly kind: KindName
}

/** All kinds in gatehouse.dev/v1beta1, sorted by name. */
export const kinds: readonly Kind[] = bundle.kinds.filter(isKind)

/** The cast is safe, because the types are generated from the same list. */
function isKind(_info: KindInfo): _info is Kind {
  return true
}

/** Returns the kind with this name, plural, singular or short name, ignoring case, or undefined. */
export function kindOf(name: string): Kind | undefined {
  const lower = name.toLowerCase()
  return kinds.find(
    ({ singular, plural, shortNames }) =>
      singular === lower || plural === lower || shortNames.includes(lower),
  )
}

/** Returns the kind with exactly this name, or undefined. */
export function isKindName(name: unknown): name is KindName {
  return kinds.some(({ kind }) => kind === name)
}
