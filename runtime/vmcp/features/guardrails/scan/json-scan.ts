/**
 * Scans all text in the bytes of a JSON value. The text consists of string values, member names and long numbers.
 * Returns the byte ranges to replace, so all other bytes stay unchanged.
 *
 * The scan works in slices of about a millisecond and stops after a maximum number of steps. A value that cannot be
 * scanned completely is refused. The value must already have been validated as JSON and UTF-8.
 */
import type { TurnWork } from '../../../../mcp/index.ts'
import { rawRanges, textBlocks } from './leaf.ts'
import {
  apart,
  type MaskedRange,
  maxMatches,
  RangeTexts,
  replacementOf,
  RuleSearch,
  ScanLimit,
  sliceSteps,
  withMasks,
} from './matches.ts'
import { type TextFrame, inJson } from '../marks.ts'
import { type ActiveRule, covers, type PointerPattern } from '../rules.ts'

/** A range of bytes and its replacement. */
export interface Replacement {
  readonly from: number
  readonly to: number
  readonly text: string
}

export interface Findings {
  /** Replacements in ascending order and without overlaps. */
  readonly edits: readonly Replacement[]
  /** Number of matches for each rule. */
  readonly counts: ReadonlyMap<string, number>
  /** The rule that refuses the whole value. */
  readonly refusedBy: string | undefined
}

export interface ScanOptions {
  /** Parts that are not scanned because they contain no text, such as opaque state. */
  readonly skips?: readonly PointerPattern[]
  /** Parts that cannot be replaced. A value with a match in such a part is refused. */
  readonly fixed?: readonly PointerPattern[]
  /** Members whose text cannot be replaced, at any depth and also in nested lists. */
  readonly compared?: ReadonlySet<string>
  /** Delimiters to place around certain texts. If set, only these texts are scanned, and member names are not. */
  readonly frame?: TextFrame | undefined
}

/** Maximum number of steps. Executing this many steps takes a few seconds. */
const maxSteps = 30_000_000
const bytesPerStep = 64
const maxDepth = 258
/** Minimum length of a scanned number. Shorter numbers cannot contain a checksum. */
const minNumber = 6
/** Maximum number of cached member names without matches. Most objects have the same member names. */
const maxNames = 1_000

export class JsonScan {
  readonly #bytes: Buffer
  readonly #rules: readonly RuleSearch[]
  readonly #options: ScanOptions
  readonly #usesPaths: boolean
  readonly #minLength: number
  readonly #edits: Replacement[] = []
  readonly #counts = new Map<string, number>()
  readonly #names = new Set<string>()
  #refusedBy: string | undefined
  /** Names and indices of the open containers. */
  readonly #path: (string | number)[] = []
  readonly #inObject: boolean[] = []
  #depth = 0
  #steps = 0
  #matches = 0
  #sliceEnd = sliceSteps
  readonly #spending = (steps: number): TurnWork<void> => this.#spend(steps)

  constructor(bytes: Buffer, rules: readonly ActiveRule[], options: ScanOptions = {}) {
    this.#bytes = bytes
    this.#options = options
    this.#rules = rules.map((rule) => new RuleSearch(rule))
    this.#minLength = Math.min(...this.#rules.map(({ minLength }) => minLength))
    const { skips = [], fixed = [], frame, compared } = options
    this.#usesPaths =
      frame !== undefined ||
      compared !== undefined ||
      skips.length + fixed.length > 0 ||
      rules.some(({ except }) => except.length > 0)
  }

  /** Scan the value. Throws ScanLimit. */
  *run(): TurnWork<Findings> {
    const bytes = this.#bytes
    let at = 0
    let isName = false
    while (at < bytes.length && this.#refusedBy === undefined) {
      const c = bytes[at]
      if (c === 0x22) {
        if (isName) {
          at = yield* this.#name(at)
          isName = false
        } else at = yield* this.#string(at)
        continue
      }
      if (c === 0x2d || (c !== undefined && c >= 0x30 && c <= 0x39)) {
        at = yield* this.#number(at)
        continue
      }
      at++
      if (c === 0x2c) isName = this.#next()
      else if (c === 0x7b || c === 0x5b) isName = this.#open(c === 0x7b)
      else if (c === 0x7d || c === 0x5d) {
        this.#depth--
        isName = false
      }
      if ((at & 0xff) === 0) yield* this.#spend(4)
    }
    return { edits: this.#edits, counts: this.#counts, refusedBy: this.#refusedBy }
  }

  /** True if a member name comes next. */
  #next(): boolean {
    const level = this.#depth - 1
    if (this.#inObject[level] === true) return true
    this.#path[level] = Number(this.#path[level]) + 1
    return false
  }

  #open(isObject: boolean): boolean {
    if (this.#depth === maxDepth) throw new ScanLimit('the value is nested too deeply')
    this.#inObject[this.#depth] = isObject
    this.#path[this.#depth++] = isObject ? '' : 0
    return isObject
  }

  /** Yield at the end of a slice. */
  *#spend(steps: number): TurnWork<void> {
    this.#steps += steps
    if (this.#steps > maxSteps) throw new ScanLimit('the value takes too long to check')
    if (this.#steps < this.#sliceEnd) return
    this.#sliceEnd = this.#steps + sliceSteps
    yield
  }

  /** Scans a member name. A match in a name cannot be replaced, because programs read members by name. */
  *#name(at: number): TurnWork<number> {
    const blocks = yield* textBlocks(this.#bytes, at, (bytes) => this.#spend(bytes / bytesPerStep))
    if (blocks.end - at - 2 < this.#minLength && !this.#usesPaths) return blocks.end
    const name = blocks.texts.length === 1 ? (blocks.texts[0] ?? '') : blocks.texts.join('')
    if (this.#usesPaths) this.#path[this.#depth - 1] = name
    if (this.#options.frame) return blocks.end
    if (name.length < this.#minLength || this.#names.has(name)) return blocks.end
    const rules = this.#rulesHere()
    // An exception applies only to this path, and not to the same name elsewhere.
    let isClean = rules.length === this.#rules.length
    for (const one of rules) {
      const spans = yield* one.find(blocks.texts, this.#spending)
      if (spans.length === 0) continue
      isClean = false
      this.#count(one.rule, spans.length)
      if (one.rule.action !== 'observe') this.#refusedBy ??= one.rule.name
    }
    if (isClean && this.#names.size < maxNames && blocks.texts.length === 1) this.#names.add(name)
    return blocks.end
  }

  *#string(at: number): TurnWork<number> {
    const blocks = yield* textBlocks(this.#bytes, at, (bytes) => this.#spend(bytes / bytesPerStep))
    const { end, texts } = blocks
    if (end - at - 2 < this.#minLength || this.#isSkipped()) return end
    const found = yield* this.#found(texts)
    const { frame } = this.#options
    const isFramed = frame?.pointers.some((one) => this.#isAt(one)) === true && this.#rulesHere().length > 0
    if (isFramed) this.#edits.push({ from: at + 1, to: at + 1, text: frame.before })
    if (found.length > 0) yield* this.#replace(at, texts, found)
    if (isFramed) this.#edits.push({ from: end - 1, to: end - 1, text: frame.after })
    return end
  }

  *#replace(at: number, texts: readonly string[], found: readonly MaskedRange[]): TurnWork<void> {
    const matched = new RangeTexts(texts)
    for (const { from, to, index } of yield* rawRanges(this.#bytes, at + 1, found)) {
      const range = found[index]
      if (!range) continue
      // Only marks depend on the matched text.
      const text = replacementOf(range, range.action === 'mark' ? matched.of(range) : '')
      this.#edits.push({ from, to, text: inJson(text) })
      if (range.action === 'mark') yield* this.#spend(range.end - range.begin)
    }
  }

  /** Scans a number, which might be a card number. */
  *#number(at: number): TurnWork<number> {
    const bytes = this.#bytes
    let end = at + 1
    while (isOfNumber(bytes[end])) end++
    yield* this.#spend((end - at) / bytesPerStep)
    if (end - at < Math.max(minNumber, this.#minLength) || this.#isSkipped()) return end
    const text = bytes.toString('latin1', at, end)
    const found = yield* this.#found([text])
    if (found.length === 0) return end
    this.#edits.push({ from: at, to: end, text: JSON.stringify(withMasks(text, found)) })
    return end
  }

  /** Returns the ranges to replace in the text, in ascending order and without overlaps. */
  *#found(texts: readonly string[]): TurnWork<readonly MaskedRange[]> {
    const ranges: MaskedRange[] = []
    for (const one of this.#rulesHere()) {
      const { rule } = one
      const spans = yield* one.find(texts, this.#spending)
      if (spans.length === 0) continue
      this.#count(rule, spans.length)
      if (rule.action === 'observe') continue
      if (rule.action === 'refuse' || this.#isFixed()) this.#refusedBy ??= rule.name
      else for (const span of spans) ranges.push({ ...span, rule: rule.name, action: rule.action })
    }
    return ranges.length < 2 ? ranges : apart(ranges)
  }

  #rulesHere(): readonly RuleSearch[] {
    if (!this.#usesPaths) return this.#rules
    return this.#rules.filter(({ rule }) => !this.#isWithin(rule.except))
  }

  #isSkipped(): boolean {
    if (!this.#usesPaths) return false
    const { frame, skips = [] } = this.#options
    return frame ? !this.#isWithin(frame.within) : this.#isWithin(skips)
  }

  #isFixed(): boolean {
    if (!this.#usesPaths) return false
    const { fixed = [], compared } = this.#options
    return this.#isWithin(fixed) || (compared !== undefined && compared.has(this.#member()))
  }

  /** Returns the nearest enclosing member, skipping lists. */
  #member(): string {
    const last = this.#path[this.#depth - 1]
    return String(typeof last === 'number' ? this.#path[this.#depth - 2] : last)
  }

  #isAt(pointer: PointerPattern): boolean {
    return pointer.length === this.#depth && covers(pointer, this.#path, this.#depth)
  }

  #isWithin(pointers: readonly PointerPattern[]): boolean {
    return pointers.some((pointer) => covers(pointer, this.#path, this.#depth))
  }

  #count({ name }: ActiveRule, matches: number): void {
    this.#matches += matches
    if (this.#matches > maxMatches) throw new ScanLimit('the value has too many matches')
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + matches)
  }
}

function isOfNumber(c: number | undefined): boolean {
  return (
    c !== undefined &&
    ((c >= 0x30 && c <= 0x39) || c === 0x2e || c === 0x2d || c === 0x2b || c === 0x65 || c === 0x45)
  )
}
