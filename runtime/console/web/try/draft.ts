/**
 * The state of a form, and the JSON that it produces. The JSON omits optional members that the user did not fill in.
 *
 * Numbers are kept as text, so the form sends integers of any size unchanged.
 */
import { type Signal, signal } from '@preact/signals'
import { jsonProblem, numberText, readJson, writeJson } from '../data/json-text.ts'
import { texts } from '../texts.ts'
import type { FieldPlan, PlanOf } from './plan.ts'

interface Base {
  readonly id: string
  readonly problem: Signal<string | undefined>
}

/** Text of a number, JSON text, or a string. */
interface TextDraft<K extends 'text' | 'number' | 'json'> extends Base {
  readonly plan: PlanOf<K>
  readonly text: Signal<string>
}

interface FlagDraft extends Base {
  readonly plan: PlanOf<'flag'>
  readonly on: Signal<boolean>
}

interface NullDraft extends Base {
  readonly plan: PlanOf<'null'>
}

interface OptionsDraft extends Base {
  readonly plan: PlanOf<'options'>
  /** Index of the selected option; -1 without a selection. */
  readonly index: Signal<number>
}

interface ManyDraft extends Base {
  readonly plan: PlanOf<'many'>
  readonly chosen: Signal<readonly number[]>
}

export interface MemberDraft {
  readonly name: string
  readonly required: boolean
  readonly included: Signal<boolean>
  readonly draft: ValueDraft
}

interface ObjectDraft extends Base {
  readonly plan: PlanOf<'object'>
  readonly members: readonly MemberDraft[]
}

interface ListDraft extends Base {
  readonly plan: PlanOf<'list'>
  readonly items: Signal<readonly ValueDraft[]>
}

interface ChoiceDraft extends Base {
  readonly plan: PlanOf<'choice'>
  readonly index: Signal<number>
  readonly inner: Signal<ValueDraft>
}

export type ValueDraft =
  | TextDraft<'text'>
  | TextDraft<'number'>
  | TextDraft<'json'>
  | FlagDraft
  | NullDraft
  | OptionsDraft
  | ManyDraft
  | ObjectDraft
  | ListDraft
  | ChoiceDraft

export type DraftOf<K extends FieldPlan['kind']> = K extends unknown
  ? Extract<ValueDraft, { readonly plan: PlanOf<K> }>
  : never

let last = 0

/** Returns an empty form for a plan, with defaults. */
export function draftOf(plan: FieldPlan): ValueDraft {
  const draft = emptyDraft(plan)
  if (plan.initial !== undefined) fill(draft, plan.initial)
  return draft
}

function emptyDraft(plan: FieldPlan): ValueDraft {
  last += 1
  const base: Base = { id: `field-${last}`, problem: signal(undefined) }
  switch (plan.kind) {
    case 'text':
      return { ...base, plan, text: signal('') }
    case 'number':
      return { ...base, plan, text: signal('') }
    case 'json':
      return { ...base, plan, text: signal('') }
    case 'flag':
      return { ...base, plan, on: signal(false) }
    case 'null':
      return { ...base, plan }
    case 'options':
      return { ...base, plan, index: signal(plan.options.length === 1 ? 0 : -1) }
    case 'many':
      return { ...base, plan, chosen: signal([]) }
    case 'object':
      return { ...base, plan, members: plan.members.map(memberOf) }
    case 'list':
      return {
        ...base,
        plan,
        items: signal(Array.from({ length: Math.min(plan.min, 10) }, () => draftOf(plan.item()))),
      }
    case 'choice': {
      const [first] = plan.options
      const inner: ValueDraft = first ? draftOf(first.plan()) : { ...base, plan: { ...plan, kind: 'null' } }
      return { ...base, plan, index: signal(0), inner: signal(inner) }
    }
  }
}

function memberOf({ name, required, plan }: PlanOf<'object'>['members'][number]): MemberDraft {
  return { name, required, included: signal(required), draft: draftOf(plan()) }
}

/** Marks a value that must not be sent. The form field shows the reason. */
class Invalid extends Error {}

/**
 * Returns the content of a form as JSON text. Returns undefined if a field is invalid; the field then shows the error.
 */
export function textOfDraft(draft: ValueDraft): string | undefined {
  const wrong = { count: 0 }
  const value = valueOf(draft, wrong)
  return wrong.count > 0 ? undefined : writeJson(value)
}

function valueOf(draft: ValueDraft, wrong: { count: number }): unknown {
  try {
    const value = checkedValue(draft, wrong)
    draft.problem.value = undefined
    return value
  } catch (error) {
    if (!(error instanceof Invalid)) throw error
    wrong.count += 1
    draft.problem.value = error.message
    return null
  }
}

function checkedValue(draft: ValueDraft, wrong: { count: number }): unknown {
  if (isOf(draft, 'object')) {
    const entries = draft.members
      .filter(({ included }) => included.value)
      .map(({ name, draft }) => [name, valueOf(draft, wrong)] as const)
    return Object.fromEntries(entries)
  }
  if (isOf(draft, 'list')) {
    const { min } = draft.plan
    if (draft.items.value.length < min) throw new Invalid(texts.form.tooFew(min))
    return draft.items.value.map((item) => valueOf(item, wrong))
  }
  if (isOf(draft, 'choice')) return valueOf(draft.inner.value, wrong)
  if (isOf(draft, 'flag')) return draft.on.value
  if (isOf(draft, 'null')) return null
  if (isOf(draft, 'many')) return draft.chosen.value.map((i) => draft.plan.options[i]?.value)
  if (isOf(draft, 'options')) {
    const option = draft.plan.options[draft.index.value]
    if (!option) throw new Invalid(texts.form.chooseOne)
    return option.value
  }
  return valueOfText(draft)
}

function valueOfText({ plan, text: { value: text } }: DraftOf<'text' | 'number' | 'json'>): unknown {
  if (plan.kind === 'json') {
    const problem = jsonProblem(text)
    if (problem !== undefined) throw new Invalid(texts.form.notJson(problem))
    return readJson(text)
  }
  if (plan.kind === 'text') {
    // Lengths count code points, as in JSON Schema.
    const chars = Array.from(text).length
    if (chars < plan.min) throw new Invalid(texts.form.tooShort(plan.min))
    if (chars > plan.max) throw new Invalid(texts.form.tooLong(plan.max))
    return text
  }
  const trimmed = text.trim()
  const pattern = plan.integer ? /^-?(?:0|[1-9]\d*)$/ : /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
  if (!pattern.test(trimmed)) throw new Invalid(plan.integer ? texts.form.notInteger : texts.form.notNumber)
  const size = Number(trimmed)
  if (size < plan.min) throw new Invalid(texts.form.tooSmall(plan.min))
  if (size > plan.max) throw new Invalid(texts.form.tooLarge(plan.max))
  return readJson(trimmed)
}

/**
 * Fills a form with a value. Returns false if the value does not fit the form. The form may then be partly filled in.
 */
export function fill(draft: ValueDraft, value: unknown): boolean {
  if (isOf(draft, 'object')) return fillObject(draft, value)
  if (isOf(draft, 'choice')) return fillChoice(draft, value)
  if (isOf(draft, 'many') || isOf(draft, 'list')) return Array.isArray(value) && fillItems(draft, value)
  if (isOf(draft, 'null')) return value === null
  if (isOf(draft, 'flag')) {
    draft.on.value = value === true
    return typeof value === 'boolean'
  }
  if (isOf(draft, 'options')) {
    draft.index.value = indexOf(draft.plan, value)
    return draft.index.value >= 0
  }
  const text = textFor(draft, value)
  draft.text.value = text ?? ''
  return text !== undefined
}

function textFor({ plan }: DraftOf<'text' | 'number' | 'json'>, value: unknown): string | undefined {
  if (plan.kind === 'json') return writeJson(value)
  if (plan.kind === 'number') return numberText(value)
  return typeof value === 'string' ? value : undefined
}

function fillItems(draft: DraftOf<'many' | 'list'>, value: readonly unknown[]): boolean {
  if (isOf(draft, 'many')) {
    const { plan } = draft
    const chosen = value.map((one) => indexOf(plan, one))
    draft.chosen.value = chosen.filter((i) => i >= 0)
    return !chosen.includes(-1)
  }
  if (!isOf(draft, 'list') || value.length > draft.plan.max) return false
  const { plan } = draft
  const items = value.map(() => draftOf(plan.item()))
  draft.items.value = items
  return items.every((item, i) => fill(item, value[i]))
}

function indexOf({ options }: PlanOf<'options'> | PlanOf<'many'>, value: unknown): number {
  const text = writeJson(value)
  return options.findIndex((option) => writeJson(option.value) === text)
}

function fillObject(draft: ObjectDraft, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const given = new Map(Object.entries(value))
  let fits = true
  for (const { name, required, included, draft: inner } of draft.members) {
    const found = given.get(name)
    included.value = required || given.has(name)
    if (given.has(name)) fits = fill(inner, found) && fits
    given.delete(name)
  }
  return fits && given.size === 0
}

function fillChoice(draft: ChoiceDraft, value: unknown): boolean {
  for (const [i, { plan }] of draft.plan.options.entries()) {
    const inner = emptyDraft(plan())
    if (!fill(inner, value)) continue
    draft.index.value = i
    draft.inner.value = inner
    return true
  }
  return false
}

export function isOf<K extends FieldPlan['kind']>(draft: ValueDraft, kind: K): draft is DraftOf<K> {
  return draft.plan.kind === kind
}
