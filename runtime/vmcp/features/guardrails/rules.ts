/** The compiled rules from the configuration, with their scope, patterns and exceptions. */
import type { RedactRule } from '../../../../schemas/index.ts'
import { type Searched, searchedExpression, searchedPattern } from './find/search.ts'

/**
 * Unescaped segments of an exception's JSON pointer (RFC 6901). The exception covers all values below the pointer. An
 * undefined segment, written as `*`, matches any segment.
 */
export type PointerPattern = readonly (string | undefined)[]

/** The target of a call, against which rules are matched. */
export interface Subject {
  readonly method: string
  readonly backend: string
  /** The backend's name for the item. Undefined if no item is called. */
  readonly original: string | undefined
}

/** `arguments` go to backends, and `results` come from backends. */
export type Direction = 'arguments' | 'results'

export type GuardrailAction = RedactRule['action'] | 'mark' | 'strip' | 'escape'

export interface RuleSettings extends Pick<RedactRule, 'name' | 'direction' | 'match' | 'except'> {
  readonly action: GuardrailAction
}

export interface CompiledRule {
  readonly settings: RuleSettings
  readonly scope: Scope
  readonly searched: readonly Searched[]
  readonly exceptions: readonly CompiledException[]
}

interface CompiledException extends Scope {
  readonly pointers: readonly PointerPattern[] | undefined
}

export interface Scope {
  readonly backends: ReadonlySet<string> | undefined
  readonly tools: ReadonlySet<string> | undefined
}

/** A rule as it applies to a call. */
export interface ActiveRule {
  readonly name: string
  readonly action: GuardrailAction
  readonly searched: readonly Searched[]
  /** Exceptions in this call. */
  readonly except: readonly PointerPattern[]
}

/** Compiles the rules. Throws PatternError if a pattern is invalid. */
export function compileRules(rules: readonly RedactRule[]): readonly CompiledRule[] {
  return rules.map((settings) => {
    const { patterns = [], expressions = [] } = settings
    return {
      ...scopedRule(settings),
      searched: [...patterns.map(searchedPattern), ...expressions.map(searchedExpression)],
    }
  })
}

/** Compiles the scope of a rule without patterns. */
export function scopedRule(settings: RuleSettings): CompiledRule {
  return {
    settings,
    scope: scopeOf(settings.match ?? {}),
    searched: [],
    exceptions: (settings.except ?? []).map(({ backends, tools, pointers }) => ({
      ...scopeOf({ backends, tools }),
      pointers: pointers?.map(pointerPattern),
    })),
  }
}

/** Returns the rules that apply to one direction of a call. */
export function rulesFor(
  rules: readonly CompiledRule[],
  direction: Direction,
  subject: Subject,
): readonly ActiveRule[] {
  return rules.flatMap(({ settings, scope, searched, exceptions }) => {
    if (settings.direction !== 'both' && settings.direction !== direction) return []
    if (!isWithin(scope, subject)) return []
    const present = exceptions.filter((exception) => isWithin(exception, subject))
    if (present.some(({ pointers }) => pointers === undefined)) return []
    const except = present.flatMap(({ pointers }) => pointers ?? [])
    return [{ name: settings.name, action: settings.action, searched, except }]
  })
}

export function scopeOf({
  backends,
  tools,
}: {
  readonly backends?: readonly string[] | undefined
  readonly tools?: readonly string[] | undefined
}): Scope {
  return { backends: backends && new Set(backends), tools: tools && new Set(tools) }
}

/** True if a call is within a scope. A scope with tools matches only calls to these tools. */
export function isWithin({ backends, tools }: Scope, { method, backend, original }: Subject): boolean {
  if (backends && !backends.has(backend)) return false
  if (!tools) return true
  return method === 'tools/call' && original !== undefined && tools.has(original)
}

function pointerPattern(pointer: string): PointerPattern {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => (segment === '*' ? undefined : segment.replaceAll('~1', '/').replaceAll('~0', '~')))
}

/** True if the value at this path is at or below the pointer. */
export function covers(pattern: PointerPattern, path: readonly (string | number)[], depth: number): boolean {
  if (pattern.length > depth) return false
  return pattern.every((segment, k) => segment === undefined || segment === String(path[k]))
}
