/** Formats tables in Markdown for docs/evidence/performance.md. */
export type Cell = string | number | undefined

export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const line = (cells: readonly Cell[]): string => `| ${cells.map(cell).join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

/** Rounds to three significant digits; whole numbers stay whole. */
function cell(value: Cell): string {
  if (typeof value !== 'number') return value ?? ''
  if (!Number.isFinite(value)) return '-'
  const size = Math.abs(value)
  return value.toFixed(size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2)
}

/** Returns the quantile `share` of sorted values. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export function sorted(values: readonly number[]): Float64Array {
  return Float64Array.from(values).sort()
}

/** Prints the progress of a part. */
export function progress(text: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)}   ${text}\n`)
}
