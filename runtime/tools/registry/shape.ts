/**
 * Checks JSON from a registry against a table of shapes and collects every violation. Members that the table does not
 * contain are dropped and listed, so they cannot reach a manifest.
 */
import { below, type Fields, isFields, shapeOf, type Violation } from '../../../schemas/index.ts'

export type Shape =
  | { readonly kind: 'text'; readonly max: number; readonly min?: number; readonly pattern?: PatternRule }
  | { readonly kind: 'word'; readonly words: readonly string[] }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'list'; readonly of: Shape; readonly max: number }
  | { readonly kind: 'map'; readonly of: Shape; readonly max: number }
  /** Any JSON value, which is ignored. */
  | { readonly kind: 'any' }
  | ObjectShape

export interface ObjectShape {
  readonly kind: 'object'
  readonly required: readonly string[]
  readonly members: Readonly<Record<string, Shape>>
}

interface PatternRule {
  readonly test: RegExp
  readonly rule: string
}

/** Maximum number of violations and of ignored members in a report. */
const maxListed = 20

export class ShapeCheck {
  readonly violations: Violation[] = []
  /** Paths of the dropped members. */
  readonly ignored: string[] = []

  report(path: string, message: string): void {
    if (this.violations.length < maxListed) this.violations.push({ path, message })
  }

  /** Returns the value without unknown members and without null. Reports each violation. */
  read(value: unknown, shape: Shape, path: string): unknown {
    switch (shape.kind) {
      case 'any':
        return undefined
      case 'text':
        return this.#text(value, shape, path)
      case 'word':
        if (typeof value !== 'string' || !shape.words.includes(value))
          this.report(path, `is ${shapeOf(value)}; must be one of: ${shape.words.join(', ')}`)
        return value
      case 'boolean':
        if (typeof value !== 'boolean') this.report(path, `is ${shapeOf(value)}; must be true or false`)
        return value
      case 'list':
        if (!Array.isArray(value)) return this.#wrong(path, value, 'a list')
        if (value.length > shape.max) return this.#tooMany(path, value.length, `${shape.max} items`)
        return value.map((item: unknown, index) => this.read(item, shape.of, below(path, index)))
      case 'map': {
        if (!isFields(value)) return this.#wrong(path, value, 'an object')
        const entries = Object.entries(value)
        if (entries.length > shape.max) return this.#tooMany(path, entries.length, `${shape.max} members`)
        return Object.fromEntries(
          entries.map(([key, item]) => [key, this.read(item, shape.of, below(path, key))]),
        )
      }
      case 'object':
        if (!isFields(value)) return this.#wrong(path, value, 'an object')
        return this.#object(value, shape, path)
    }
  }

  #object(value: Fields, { members, required }: ObjectShape, path: string): Fields {
    const read: Record<string, unknown> = {}
    for (const [key, member] of Object.entries(value)) {
      const shape = Object.hasOwn(members, key) ? members[key] : undefined
      if (!shape) {
        if (this.ignored.length < maxListed) this.ignored.push(below(path, key))
      } else if (member !== null) read[key] = this.read(member, shape, below(path, key))
    }
    for (const name of required) if (!Object.hasOwn(read, name)) this.report(below(path, name), 'is required')
    return read
  }

  #text(value: unknown, { max, min = 0, pattern }: Shape & { kind: 'text' }, path: string): unknown {
    if (typeof value !== 'string') return this.#wrong(path, value, 'a string')
    const isTooLong = value.length > max
    if (isTooLong || value.length < min)
      this.report(
        path,
        `is ${shapeOf(value)}; must have ${min === 0 ? 'at most' : `${min} to`} ${max} characters`,
      )
    else if (value.includes('\0')) this.report(path, 'contains a NUL character')
    else if (pattern && !pattern.test.test(value)) this.report(path, pattern.rule)
    return value
  }

  #wrong(path: string, value: unknown, wanted: string): undefined {
    this.report(path, `is ${shapeOf(value)}; must be ${wanted}`)
    return undefined
  }

  #tooMany(path: string, count: number, most: string): undefined {
    this.report(path, `has ${count} entries; at most ${most} are allowed`)
    return undefined
  }
}
