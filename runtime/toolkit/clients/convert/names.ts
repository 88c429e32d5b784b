/**
 * Names of objects made from names that people chose.
 */
import { createHash } from 'node:crypto'
import { shortName } from '../../../../schemas/index.ts'

const maxName = 63

/** A DNS label: lower case, other signs to `-`, at most 63. A name of nothing else becomes `server-` and a hash. */
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

/** The first of `name`, `name-2`, `name-3` … that is free; it is taken then. */
export function claimName(name: string, taken: Set<string>): string {
  for (let n = 1; ; n++) {
    const suffix = n === 1 ? '' : `-${n}`
    const claimed = `${shortName(name, maxName - suffix.length)}${suffix}`
    if (taken.has(claimed)) continue
    taken.add(claimed)
    return claimed
  }
}
