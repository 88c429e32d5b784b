/**
 * Computes how an approval changes an MCPToolLock, in a form that can be applied to a document and to its value. Pure.
 *
 * When a backend shows callers different definitions, an approved definition is added to the existing definitions,
 * because one caller's view does not represent all callers.
 */
import { cloneJson, GatehouseError, type ToolLockSpec } from '../../../../schemas/index.ts'
import { lockedItem, plainForm } from '../manifest.ts'

/** A difference between a backend and its lock that a user has reviewed. */
export interface Reviewed {
  readonly kind: 'tool' | 'prompt' | 'resourceTemplate' | 'skill' | 'instructions'
  readonly name: string
  readonly state: 'new' | 'changed' | 'removed'
  /** JSON text of the offered definition. Undefined for a removed item. */
  readonly offered: string | undefined
  /** True when the backend shows callers different definitions. */
  readonly perCaller: boolean
}

export type Steps = readonly (string | number)[]

/** Sets or removes a member or item, or inserts an item at an index. */
export type Change =
  | { readonly do: 'set' | 'insert'; readonly path: Steps; readonly value: unknown }
  | { readonly do: 'remove'; readonly path: Steps }

type Item = NonNullable<ToolLockSpec['tools']>[number]

export const memberOf = {
  tool: 'tools',
  prompt: 'prompts',
  resourceTemplate: 'resourceTemplates',
  skill: 'skills',
} as const

const maxVariants = 8

/** Throws LOCK_NOT_WRITTEN when no lock in a file or cluster can contain the definition. */
export function checkHoldable(variants: number, { kind, name, offered, perCaller }: Reviewed): void {
  const texts: unknown[] = kind === 'instructions' && offered !== undefined ? [JSON.parse(offered)] : [name]
  // UTF-8 cannot encode a lone surrogate.
  if (!texts.every((text) => typeof text === 'string' && text.isWellFormed()))
    throw new GatehouseError('LOCK_NOT_WRITTEN', { detail: 'a manifest cannot contain this text' })
  if (perCaller && offered !== undefined && variants >= maxVariants)
    throw new GatehouseError('LOCK_NOT_WRITTEN', {
      detail: `the lock already has ${maxVariants} variants of this item: remove one manually`,
    })
}

/**
 * Throws LOCK_NOT_WRITTEN when a lock cannot contain the definition, and APPROVAL_STALE when the lock differs from the
 * reviewed lock.
 */
export function changeOf(spec: Partial<ToolLockSpec>, reviewed: Reviewed): Change {
  const { kind, name, offered } = reviewed
  if (kind === 'instructions') {
    checkState(reviewed, spec.server?.instructions !== undefined)
    checkHoldable(0, reviewed)
    return instructionsChange(spec, offered)
  }
  const member = memberOf[kind]
  const items = spec[member] ?? []
  const at = items.findIndex((item) => item.name === name)
  const before = items[at]
  checkState(reviewed, before !== undefined)
  checkHoldable(before?.variants?.length ?? 0, reviewed)
  if (offered === undefined)
    return { do: 'remove', path: items.length > 1 ? ['spec', member, at] : ['spec', member] }
  if (before) return { do: 'set', path: ['spec', member, at], value: itemOf(before, reviewed, offered) }
  const item = lockedItem({ key: name, text: offered }, undefined)
  if (items.length === 0) return { do: 'set', path: ['spec', member], value: [item] }
  const next = items.findIndex((other) => other.name > name)
  return { do: 'insert', path: ['spec', member, next < 0 ? items.length : next], value: item }
}

function itemOf(before: Item, { name, perCaller }: Reviewed, offered: string): Item {
  if (!perCaller) return lockedItem({ key: name, text: offered }, before)
  return { ...before, variants: [...(before.variants ?? []), plainForm(offered)] }
}

function checkState({ state }: Reviewed, isLocked: boolean): void {
  if (isLocked === (state === 'new'))
    throw new GatehouseError('APPROVAL_STALE', {
      detail: 'the lock has changed since the review: review the difference again',
    })
}

function instructionsChange({ server }: Partial<ToolLockSpec>, offered: string | undefined): Change {
  if (offered === undefined) return { do: 'remove', path: ['spec', 'server', 'instructions'] }
  const instructions: unknown = JSON.parse(offered)
  if (!server) return { do: 'set', path: ['spec', 'server'], value: { instructions } }
  return { do: 'set', path: ['spec', 'server', 'instructions'], value: instructions }
}

/** Returns the value after a change, without modifying the original. */
export function applyChange(before: unknown, change: Change): unknown {
  const value: unknown = cloneJson(before)
  const parents = change.path.slice(0, -1)
  const last = change.path.at(-1)
  const parent = parents.reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], value)
  if (Array.isArray(parent) && typeof last === 'number') {
    if (change.do === 'set') parent[last] = change.value
    else if (change.do === 'insert') parent.splice(last, 0, change.value)
    else parent.splice(last, 1)
  } else {
    const fields = parent as Record<string, unknown>
    if (change.do === 'remove') delete fields[String(last)]
    else fields[String(last)] = change.value
  }
  return value
}
