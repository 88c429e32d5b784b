/**
 * Formats rows under a heading, page by page. Columns never become narrower, and the last column is truncated to the
 * terminal width.
 */
import { oneLine } from '../../toolkit/terminal/plain-text.ts'

export interface TableColumn {
  readonly title: string
  /** True when the column is truncated to the remaining width. */
  readonly isCut?: boolean
}

const gap = '   '
/** Minimum width of the truncated column. */
const minWidth = 16

export class Table {
  readonly #columns: readonly TableColumn[]
  readonly #width: number | undefined
  readonly #widths: number[]
  #isFirst = true

  /** `width` is the width of the terminal. If undefined, nothing is truncated. */
  constructor(columns: readonly TableColumn[], width: number | undefined) {
    this.#columns = columns
    this.#width = width
    this.#widths = columns.map(({ title }) => title.length)
  }

  /** Returns the formatted lines of the rows. The first call also returns the heading. */
  lines(rows: readonly (readonly string[])[]): readonly string[] {
    const plain = rows.map((row) => row.map((cell) => oneLine(cell)))
    for (const row of plain) {
      for (const [index, cell] of row.entries())
        this.#widths[index] = Math.max(this.#widths[index] ?? 0, cell.length)
    }
    const cut = this.#cutWidth()
    const head = this.#isFirst
      ? [
          this.#line(
            this.#columns.map(({ title }) => title),
            cut,
          ),
        ]
      : []
    this.#isFirst = false
    return [...head, ...plain.map((row) => this.#line(row, cut))]
  }

  #cutWidth(): number | undefined {
    if (this.#width === undefined) return undefined
    const otherWidths = this.#columns.flatMap(({ isCut }, index) => (isCut ? [] : [this.#widths[index] ?? 0]))
    const gaps = gap.length * (this.#columns.length - 1)
    return Math.max(minWidth, this.#width - gaps - otherWidths.reduce((sum, width) => sum + width, 0))
  }

  #line(cells: readonly string[], cut: number | undefined): string {
    const shown = cells.map((cell, index) => {
      const isCut = this.#columns[index]?.isCut === true
      const width = isCut ? Math.min(this.#widths[index] ?? 0, cut ?? Infinity) : (this.#widths[index] ?? 0)
      const text = cell.length > width ? `${cell.slice(0, width - 1)}…` : cell
      return index === cells.length - 1 ? text : text.padEnd(width)
    })
    return shown.join(gap)
  }
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** Formats an age as kubectl does: the largest unit, plus the next smaller unit if the count is below ten. */
export function ageText(ms: number): string {
  for (const [index, [unit, size]] of units.entries()) {
    const count = Math.floor(ms / size)
    if (count < 1) continue
    const [below, belowSize] = units[index + 1] ?? ['', 1]
    const rest = below === '' ? 0 : Math.floor((ms % size) / belowSize)
    return count < 10 && rest > 0 ? `${count}${unit}${rest}${below}` : `${count}${unit}`
  }
  return '0s'
}
