/** Object names from user-defined names. */
import { createHash } from 'node:crypto'
import { shortName } from '../../../../schemas/index.ts'

const maxName = 63

/**
 * Converts a name to a DNS label: lower case, other characters to `-`, at most 63 characters. A name without usable
 * characters becomes `server-` plus a hash.
 */
export function objectName(name: string): string {
  const plain = name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  if (plain !== '') return shortName(plain, maxName)
  return `server-${createHash('sha256').update(name).digest('hex').slice(0, 8)}`
}

/** Returns the first free name of `name`, `name-2`, `name-3` … and adds it to `usedNames`. */
export function claimName(name: string, usedNames: Set<string>): string {
  for (let n = 1; ; n++) {
    const suffix = n === 1 ? '' : `-${n}`
    const claimed = `${shortName(name, maxName - suffix.length)}${suffix}`
    if (usedNames.has(claimed)) continue
    usedNames.add(claimed)
    return claimed
  }
}
