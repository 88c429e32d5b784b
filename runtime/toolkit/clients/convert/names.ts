/** Creates object names from user-defined names. */
import { createHash } from 'node:crypto'
import { shortName } from '../../../../schemas/index.ts'

const maxName = 63

/**
 * Converts a name to a DNS label: changes it to lower case, replaces other characters with `-`, and limits the length
 * to 63 characters. A name without usable characters becomes `server-` plus a hash.
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

/** Creates unique names for the objects in one conversion. */
export class ObjectNames {
  readonly #used = new Set<string>()
  /**
   * The last number assigned to each name. Later searches start from this number, so that many equal names are handled
   * in linear time.
   */
  readonly #lastNumber = new Map<string, number>()

  /** Claims and returns the first free name among `name`, `name-2`, `name-3` …. */
  claim(name: string): string {
    for (let n = this.#lastNumber.get(name) ?? 1; ; n++) {
      const suffix = n === 1 ? '' : `-${n}`
      const claimed = `${shortName(name, maxName - suffix.length)}${suffix}`
      if (this.#used.has(claimed)) continue
      this.#used.add(claimed)
      this.#lastNumber.set(name, n)
      return claimed
    }
  }

  /** Frees the name that was claimed last. */
  release(claimed: string): void {
    this.#used.delete(claimed)
  }
}
