/**
 * Values that contain no other values. None, bool, small int and string are JavaScript's null, boolean, integral number
 * and string (one character per byte, see text.ts).
 *
 * An int is a number within the safe range and a bigint outside it, never both. A float is a `Float`, to distinguish it
 * from an int.
 * Source: Starlark specification, "Data types".
 */
export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

/** A sequence of bytes that is not a string. */
export class Bytes {
  readonly data: string
  constructor(data: string) {
    this.data = data
  }
}

/** An arithmetic sequence, stored without its elements. */
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

/** Result of `elems`, `codepoints` and similar methods: a view of a string as a sequence. */
export class TextView {
  readonly text: string
  readonly method: 'elems' | 'elem_ords' | 'codepoints' | 'codepoint_ords'
  /** True for a view of bytes. */
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
