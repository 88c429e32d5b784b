/** What the kinds are called. */
import { bundle } from './bundle.ts'
import type { KindInfo } from './schema.ts'

/** All kinds of gatehouse.dev/v1beta1, sorted by name. */
export const kinds: readonly KindInfo[] = bundle.kinds

/** Finds a kind by its name, plural, singular or a short name, in any case; undefined when there is none. */
export function kindOf(name: string): KindInfo | undefined {
  const lower = name.toLowerCase()
  return kinds.find(
    ({ singular, plural, shortNames }) =>
      singular === lower || plural === lower || shortNames.includes(lower),
  )
}
