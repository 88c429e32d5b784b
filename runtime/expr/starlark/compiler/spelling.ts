/** Suggests the intended name for an undefined name. */

/** Maximum length of compared names. The time grows with the product of the two lengths. */
const maxLength = 64
const maxCandidates = 500

/** Returns the candidate closest to a name, or undefined when no candidate is similar. */
export function likely(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > maxLength) return undefined
  let best: string | undefined
  let least = Math.min(Math.floor((name.length + 5) / 3), name.length)
  const plain = simplify(name)
  for (const candidate of candidates.slice(0, maxCandidates)) {
    if (candidate.length > maxLength) continue
    const far = distance(plain, simplify(candidate))
    if (far >= least) continue
    least = far
    best = candidate
  }
  return best
}

function simplify(name: string): string {
  return name.toLowerCase().replaceAll('_', '')
}

/** Returns the number of insertions, deletions and substitutions required. */
function distance(x: string, y: string): number {
  let row = Array.from({ length: y.length + 1 }, (_, i) => i)
  for (let i = 1; i <= x.length; i++) {
    const next = [i]
    for (let j = 1; j <= y.length; j++) {
      const exchanged = (row[j - 1] ?? 0) + Number(x[i - 1] !== y[j - 1])
      next.push(Math.min(exchanged, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[y.length] ?? 0
}
