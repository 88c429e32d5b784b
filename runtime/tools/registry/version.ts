/**
 * Orders the versions of a server. Build metadata has no effect.
 *
 * Source: Semantic Versioning 2.0.0, section 11. Accepts any number of numeric parts and leading zeros, for dates.
 */

/** True when both versions can be ordered and `version` has the higher precedence. */
export function isNewer(version: string, than: string): boolean {
  const [a, b] = [partsOf(version), partsOf(than)]
  if (!a || !b) return false
  const order = compareLists(a.release, b.release)
  if (order !== 0) return order > 0
  // A release is newer than its pre-releases.
  if (!a.pre || !b.pre) return !a.pre && b.pre !== undefined
  return compareLists(a.pre, b.pre) > 0
}

interface VersionParts {
  readonly release: readonly string[]
  readonly pre: readonly string[] | undefined
}

function partsOf(version: string): VersionParts | undefined {
  const [, release, pre] = /^v?(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?$/.exec(version) ?? []
  return release === undefined ? undefined : { release: release.split('.'), pre: pre?.split('.') }
}

/** The longer list is higher when it begins with the shorter list. */
function compareLists(a: readonly string[], b: readonly string[]): number {
  for (const [index, part] of a.entries()) {
    const other = b[index]
    if (other === undefined) return 1
    const order = compareParts(part, other)
    if (order !== 0) return order
  }
  return a.length - b.length
}

function compareParts(a: string, b: string): number {
  const [isNumberA, isNumberB] = [/^\d+$/.test(a), /^\d+$/.test(b)]
  // Numbers are lower than words.
  if (isNumberA !== isNumberB) return isNumberA ? -1 : 1
  const [left, right] = isNumberA ? [BigInt(a), BigInt(b)] : [a, b]
  return left < right ? -1 : left > right ? 1 : 0
}
