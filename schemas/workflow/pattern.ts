/**
 * Regular expressions from users: `pattern` in the JSON Schemas of workflows. Matching takes linear time, so no pattern
 * or text can block the server.
 *
 * The syntax is RE2, plus `\uXXXX`. It excludes lookaround and backreferences, which cannot be matched in linear time,
 * and repetition counts above 1000. Portable JSON Schemas should use an even smaller subset.
 * Source: RE2 syntax; JSON Schema 2020-12, core, section 6.4.
 */
import type { RE2JS } from '@bufbuild/re2'
import { ModuleError } from '../errors.ts'
import { loadPart } from '../parts/load.ts'

/** A pattern that the engine has compiled. */
export type PatternProgram = ReturnType<RE2JS['re2']>['prog']

export class PatternError extends ModuleError {}

export interface Pattern {
  /** True when the pattern matches anywhere in the text. */
  test(text: string): boolean
  /** Returns the cost of testing one text, in the unit of the workflow budgets (about 100 ns). */
  cost(text: string): number
  /** True when the first test is expensive because the engine computes a Unicode class. */
  readonly isHeavy: boolean
}

const maxLength = 1_000
/** Maximum number of instructions in a compiled pattern. Every instruction can be active at every character. */
const maxSize = 5_000

/** Compiles a pattern. Throws PatternError. */
export function compilePattern(source: string): Pattern {
  if (source.length > maxLength) throw new PatternError(`longer than ${maxLength} characters`)
  if (sizeOf(source) > maxSize) throw new PatternError('too large because of its repetitions')
  const pattern = withoutUnicodeEscapes(source)
  // Checks the syntax with a small class, because the first use of a Unicode class takes tens of milliseconds.
  const isHeavy = unicodeClass.test(pattern)
  const checked = compiled(isHeavy ? withSmallClasses(pattern) : pattern)
  const size = checked.re2().prog.numInst()
  if (size > maxSize) throw new PatternError('too large because of its repetitions')
  let exact = isHeavy ? undefined : checked
  return {
    isHeavy,
    test: (text) => (exact ??= compiled(pattern)).test(text),
    cost: (text) => text.length * (4 + size / 2),
  }
}

/**
 * Returns the compiled program of a pattern, for searches that need match positions. With `checksOnly`, small classes
 * replace Unicode classes, so the program can only be used for checks. Throws PatternError.
 */
export function compileProgram(
  source: string,
  maxInstructions: number,
  { checksOnly = false }: { readonly checksOnly?: boolean } = {},
): PatternProgram {
  if (source.length > maxLength) throw new PatternError(`longer than ${maxLength} characters`)
  if (sizeOf(source) > maxInstructions) throw new PatternError('too large because of its repetitions')
  const pattern = withoutUnicodeEscapes(source)
  const { prog } = compiled(
    checksOnly && unicodeClass.test(pattern) ? withSmallClasses(pattern) : pattern,
  ).re2()
  if (prog.numInst() > maxInstructions) throw new PatternError('too large because of its repetitions')
  return prog
}

type Library = typeof import('../parts/pattern-library.ts')

/** Loads the engine on first use, because it is 0.15 MB of script. */
let library: Library | undefined

function compiled(pattern: string): RE2JS {
  library ??= loadPart('pattern-library') as Library
  try {
    return new library.RE2JS(pattern)
  } catch (error) {
    const [, what] = /^error parsing regexp: (.*)$/s.exec(error instanceof Error ? error.message : '') ?? []
    throw new PatternError(
      `${what ?? 'compilation failed'} (lookaround, backreferences and repeats above 1000 are not supported)`,
    )
  }
}

const unicodeClass = /\\[pP](?:\{\^?(\w+)\}|([A-Z]))/
const categories: ReadonlySet<string> = new Set(
  'C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs'.split(
    ' ',
  ),
)

function withSmallClasses(pattern: string): string {
  return pattern.replaceAll(new RegExp(unicodeClass, 'g'), (all, long?: string, short?: string) => {
    if (!categories.has(long ?? short ?? ''))
      throw new PatternError(`${all} is not a general category of Unicode, such as \\p{L} or \\p{Nd}`)
    return '\\d'
  })
}

/** Converts `\u00e9`, surrogate pairs and `\u{1F600}` to the RE2 form `\x{...}`. */
function withoutUnicodeEscapes(pattern: string): string {
  return pattern.replaceAll(
    /\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|[^])/g,
    (all, high?: string, low?: string, short?: string, long?: string) => {
      if (high !== undefined && low !== undefined) {
        const pair = String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16))
        return `\\x{${pair.codePointAt(0)?.toString(16)}}`
      }
      const digits = short ?? long
      return digits === undefined ? all : `\\x{${digits}}`
    },
  )
}

/**
 * Estimates the number of instructions without compiling the pattern. Repetitions multiply the size of their operand.
 */
function sizeOf(pattern: string): number {
  const token = /\\[pPx]\{[^}]*\}|\\[^]|\[\^?\]?(?:\\[^]|\[:\w+:\]|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|[^]/g
  const outer: number[] = []
  let sum = 0
  let last = 0
  for (const [text, least, most] of pattern.matchAll(token)) {
    if (least !== undefined) {
      const times = Math.max(Number(least), Number(most ?? 0), 1)
      sum += last * (times - 1)
      last *= times
    } else if (text === '(') {
      outer.push(sum)
      sum = 0
    } else if (text === ')') {
      last = sum + 2
      sum = (outer.pop() ?? 0) + last
    } else {
      last = 1
      sum += 1
    }
  }
  return outer.reduce((all, one) => all + one, sum)
}
