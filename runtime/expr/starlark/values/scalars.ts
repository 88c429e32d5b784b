/**
 * Values that hold no other values. None, bool, small int and string are JavaScript's own null, boolean, integral number
 * and string (one character for each byte, see text.ts).
 *
 * An int is a number as long as it is a safe integer, a bigint beyond; never both. A float is a `Float`, so that the
 * two stay apart.
 * Source: Starlark specification, "Data types".
 */
export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** A sequence of bytes that is no text. */
export class Bytes {
  readonly data: string
  constructor(data: string) {
    this.data = data
  }
}

/** An arithmetic sequence that is not laid out. */
export class Range {
  readonly start: number
  readonly stop: number
  readonly step: number
  readonly length: number
  constructor(start: number, stop: number, step: number) {
    this.start = start
    this.stop = stop
    this.step = step
    const span = step > 0 ? stop - start : start - stop
    this.length = span > 0 ? Math.floor((span - 1) / Math.abs(step)) + 1 : 0
  }

  at(index: number): number {
    return this.start + index * this.step
  }
}

/** What `elems`, `codepoints` and their likes answer: a text seen as a sequence. */
export class TextView {
  readonly text: string
  readonly method: 'elems' | 'elem_ords' | 'codepoints' | 'codepoint_ords'
  /** True for the view of bytes. */
  readonly ofBytes: boolean
  constructor(
    text: string,
    method: TextView['method'],
    { ofBytes = false }: { readonly ofBytes?: boolean } = {},
  ) {
    this.text = text
    this.method = method
    this.ofBytes = ofBytes
  }
}

export type Int = number | bigint
export type Scalar = null | boolean | Int | string | Float | Bytes | Range | TextView

export function isInt(value: unknown): value is Int {
  return typeof value === 'number' || typeof value === 'bigint'
}
