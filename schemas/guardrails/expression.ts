/**
 * Finds all matches of an RE2 regular expression in a string in linear time, by simulating all states at once. The
 * search can stop after any character and continue later; it looks ahead by only one character.
 *
 * The result is the union of all matches, and lazy quantifiers are treated as greedy. For redaction, a match that is
 * too long is better than a match that is too short. The search reads each character once.
 * Source: R. Cox, "Regular Expression Matching: the Virtual Machine Approach" (the simulation).
 */
import { compileProgram, PatternError, type PatternProgram } from '../workflow/pattern.ts'

/** Maximum number of instructions in one expression. Every instruction can be active at every character. */
const maxInstructions = 500

/** The engine's instruction codes. */
const op = { alt: 1, altMatch: 2, capture: 3, emptyWidth: 4, fail: 5, match: 6, nop: 7 } as const
const empty = { beginLine: 1, endLine: 2, beginText: 4, endText: 8, boundary: 16, noBoundary: 32 } as const
const anyContext = 63
const asciiSize = 128

/** A validated and compiled expression. All searches share it. */
export class LinearExpression {
  readonly start: number
  readonly size: number
  readonly kinds: Uint8Array
  readonly outs: Uint16Array
  readonly args: Uint16Array
  /** Contains 1 for each ASCII character that can start a match. */
  readonly firsts: Uint8Array = new Uint8Array(asciiSize)
  readonly #program: PatternProgram
  /** Contains 1 for each ASCII character that an instruction accepts. */
  readonly #ascii: Uint8Array

  /** Throws PatternError. With `checksOnly`, the expression cannot be used for searches. */
  constructor(source: string, options: { readonly checksOnly?: boolean } = {}) {
    const program = compileProgram(source, maxInstructions, options)
    this.#program = program
    this.start = program.start
    this.size = program.numInst()
    const all = Array.from({ length: this.size }, (_, pc) => program.getInst(pc))
    this.kinds = Uint8Array.from(all, (one) => one.op)
    this.outs = Uint16Array.from(all, (one) => one.out)
    this.args = Uint16Array.from(all, (one) => one.arg)
    this.#ascii = new Uint8Array(this.size * asciiSize)
    for (const [pc, one] of options.checksOnly ? [] : all.entries())
      if (one.op > op.nop)
        for (let c = 0; c < asciiSize; c++) if (one.matchRune(c)) this.#ascii[pc * asciiSize + c] = 1
    const begin = new States(this)
    begin.add(this.start, 0, anyContext)
    if (begin.matched >= 0) throw new PatternError('matches the empty string')
    for (let k = 0; k < begin.count; k++)
      for (let c = 0; c < asciiSize; c++) if (this.takes(begin.pcs[k] ?? 0, c)) this.firsts[c] = 1
  }

  /** True when an instruction accepts a character. */
  takes(pc: number, rune: number): boolean {
    if (rune < asciiSize) return this.#ascii[pc * asciiSize + rune] === 1
    return this.#program.getInst(pc).matchRune(rune)
  }
}

/** States that are waiting for a character, each with the start of its match, ordered by start. */
class States {
  readonly #expression: LinearExpression
  readonly pcs: Int32Array
  /** Starts of the matches, as doubles, because texts may be long. */
  readonly starts: Float64Array
  count = 0
  /** Start of the longest match that ends at the current position, or -1. */
  matched = -1
  readonly #seen: Uint32Array
  readonly #stack: number[] = []
  #round = 1

  constructor(expression: LinearExpression) {
    const { size } = expression
    this.#expression = expression
    this.pcs = new Int32Array(size)
    this.starts = new Float64Array(size)
    this.#seen = new Uint32Array(size)
  }

  clear(): void {
    this.count = 0
    this.matched = -1
    this.#round = (this.#round + 1) >>> 0
    if (this.#round === 0) {
      this.#seen.fill(0)
      this.#round = 1
    }
  }

  /**
   * Adds all states that are reachable without consuming a character. Starts must be ascending. If a state is added
   * twice, the first start applies.
   */
  add(from: number, start: number, context: number): void {
    const stack = this.#stack
    const { kinds, outs, args } = this.#expression
    stack.push(from)
    for (let pc = stack.pop(); pc !== undefined; pc = stack.pop()) {
      if (this.#seen[pc] === this.#round) continue
      this.#seen[pc] = this.#round
      const kind = kinds[pc]
      const out = outs[pc] ?? 0
      const arg = args[pc] ?? 0
      if (kind === op.alt || kind === op.altMatch) stack.push(arg, out)
      else if (kind === op.capture || kind === op.nop) stack.push(out)
      else if (kind === op.match) this.matched = this.matched < 0 ? start : this.matched
      else if (kind === op.emptyWidth) {
        if ((arg & ~context) === 0) stack.push(out)
      } else if (kind !== op.fail) {
        this.pcs[this.count] = pc
        this.starts[this.count++] = start
      }
    }
  }
}

/** One search through text that arrives in pieces. */
export class ExpressionSearch {
  readonly #expression: LinearExpression
  #states: States
  #next: States
  #text = ''
  #isLast = false
  #at = 0
  /** Number of characters before `#text`. */
  #base = 0
  #before = -1
  /** Start and end of each match, in characters from the beginning of the text. Matches are ascending and disjoint. */
  readonly spans: number[] = []

  constructor(expression: LinearExpression) {
    this.#expression = expression
    this.#states = new States(expression)
    this.#next = new States(expression)
  }

  /** Resets the search for a new text. */
  begin(): void {
    this.#states.clear()
    this.#text = ''
    this.#isLast = false
    this.#at = 0
    this.#base = 0
    this.#before = -1
    this.spans.length = 0
  }

  /** Adds the next piece. Search the previous piece completely before this call. */
  push(piece: string, isLast: boolean): void {
    this.#base += this.#at
    this.#text = this.#at < this.#text.length ? this.#text.slice(this.#at) + piece : piece
    this.#at = 0
    this.#isLast = isLast
  }

  /**
   * Continues for about this many steps and returns the number of steps taken. A smaller number means that the search
   * of the current piece is complete.
   */
  advance(steps: number): number {
    const { start, firsts } = this.#expression
    const text = this.#text
    // The last four code units wait for the next piece, because a surrogate pair and the character after it must be
    // complete.
    const end = this.#isLast ? text.length : text.length - 4
    let taken = 0
    while (this.#at < end && taken < steps) {
      if (this.#states.count === 0) taken += this.#skip(text, end, firsts)
      if (this.#at >= end) break
      const rune = text.codePointAt(this.#at) ?? 0
      const width = rune > 0xffff ? 2 : 1
      const after = text.codePointAt(this.#at + width) ?? -1
      const states = this.#states
      states.add(start, this.#base + this.#at, contextOf(this.#before, rune))
      this.#at += width
      const context = contextOf(rune, after)
      this.#step(states, rune, context)
      taken += 2 + states.count
      this.#before = rune
    }
    return taken
  }

  #step(states: States, rune: number, context: number): void {
    const expression = this.#expression
    const next = this.#next
    next.clear()
    for (let k = 0; k < states.count; k++) {
      const pc = states.pcs[k] ?? 0
      if (expression.takes(pc, rune)) next.add(expression.outs[pc] ?? 0, states.starts[k] ?? 0, context)
    }
    if (next.matched >= 0) this.#found(next.matched, this.#base + this.#at)
    this.#states = next
    this.#next = states
  }

  /** Skips characters that cannot start a match. */
  #skip(text: string, end: number, firsts: Uint8Array): number {
    const from = this.#at
    let i = from
    while (i < end) {
      const c = text.charCodeAt(i)
      if (c >= asciiSize || firsts[c] === 1) break
      i++
    }
    if (i > from) {
      this.#before = text.charCodeAt(i - 1)
      this.#at = i
    }
    return (i - from) >> 3
  }

  #found(begin: number, end: number): void {
    const { spans } = this
    let from = begin
    while (spans.length > 0 && (spans[spans.length - 1] ?? 0) > from) {
      spans.pop()
      from = Math.min(from, spans.pop() ?? from)
    }
    spans.push(from, end)
  }
}

/** Returns the conditions that hold between two characters; -1 means no character. */
function contextOf(before: number, after: number): number {
  let context = isWord(before) === isWord(after) ? empty.noBoundary : empty.boundary
  if (before < 0) context |= empty.beginText | empty.beginLine
  else if (before === 0x0a) context |= empty.beginLine
  if (after < 0) context |= empty.endText | empty.endLine
  else if (after === 0x0a) context |= empty.endLine
  return context
}

function isWord(rune: number): boolean {
  return (
    (rune >= 0x61 && rune <= 0x7a) ||
    (rune >= 0x41 && rune <= 0x5a) ||
    (rune >= 0x30 && rune <= 0x39) ||
    rune === 0x5f
  )
}
