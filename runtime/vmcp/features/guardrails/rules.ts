/** The rules of the configuration, ready for use: where each applies, what it looks for, what it leaves alone. */
import type { RedactRule } from '../../../../schemas/index.ts'
import { type Searched, searchedExpression, searchedPattern } from './find/search.ts'
import { type PointerPattern, pointerPattern } from './look/pointers.ts'

/** What a call is about. */
export interface Subject {
  readonly method: string
  readonly backend: string
  /** What the backend calls it; undefined where nothing is called. */
  readonly original: string | undefined
}

/** What goes to backends, or what comes from them. */
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

/** A rule as it concerns one call. */
export interface ActiveRule {
  readonly name: string
  readonly action: GuardrailAction
  readonly searched: readonly Searched[]
  /** What it leaves alone in this call. */
  readonly except: readonly PointerPattern[]
}

/** Throws PatternError. */
export function compileRules(rules: readonly RedactRule[]): readonly CompiledRule[] {
  return rules.map((settings) => {
    const { patterns = [], expressions = [] } = settings
    return {
      ...scopedRule(settings),
      searched: [...patterns.map(searchedPattern), ...expressions.map(searchedExpression)],
    }
  })
}

/** A rule that says where it applies, and searches for nothing. */
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

/** The rules that concern what is sent in one direction of a call. */
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

/** Where tools are named it is about calls of them alone. */
export function isWithin({ backends, tools }: Scope, { method, backend, original }: Subject): boolean {
  if (backends && !backends.has(backend)) return false
  if (!tools) return true
  return method === 'tools/call' && original !== undefined && tools.has(original)
}
