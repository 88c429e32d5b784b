/** How the items of a backend are digested, as the configuration says. */
import type { PinningConfig } from './book.ts'
import type { PinRules } from './parts.ts'

/** Undefined while pinning is off. */
export function pinRules({ pinning, toolLocks = [] }: PinningConfig, backend: string): PinRules | undefined {
  if (!pinning) return undefined
  const own = toolLocks.filter((lock) => lock.backend === backend)
  return { ignore: [...new Set(own.flatMap(({ ignore = [] }) => ignore))].sort() }
}
