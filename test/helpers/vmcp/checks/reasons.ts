/**
 * Reasons to reject an operation, encoded in the name of an item. For example, a policy forbids the item
 * `unauthorized--limited`, and its rate limit is used up. All other parts of the rig derive their settings from these
 * names.
 */

/** In the order of the tables, which is not the order of the checks. */
export const reasons = [
  'unknown',
  'header-mismatch',
  'webhook-denies',
  'webhook-fails',
  'webhook-ignored',
  'unauthorized',
  'pinned',
  'limited',
  'guarded-arguments',
  'pinned-arguments',
  'quota-exceeded',
  'backend-down',
  'backend-left-out',
  'backend-header-mismatch',
  'backend-error',
  'backend-http-error',
  'tool-error',
  'guarded-result',
] as const
export type Reason = (typeof reasons)[number]

/** Backends of the rig: reachable, unreachable, and excluded because of an invalid configuration. */
export type BackendName = 'live' | 'down' | 'out'

const separator = '--'

/** Name of an item that has all of these reasons to be rejected; `free` when there is none. */
export function nameFor(...all: readonly Reason[]): string {
  return all.length === 0 ? 'free' : all.join(separator)
}

/** True when a name, or a text that contains the name, has this reason. */
export function has(name: string, reason: Reason): boolean {
  // One reason may begin with the name of another.
  return new RegExp(`(^|[^a-z-]|--)${reason}($|[^a-z-]|--)`).test(name)
}

export function backendOf(name: string): BackendName {
  if (has(name, 'backend-down')) return 'down'
  return has(name, 'backend-left-out') ? 'out' : 'live'
}

/** Reasons that exclude each other, because they describe the same property of a tool or a call. */
const exclusive: readonly (readonly Reason[])[] = [
  ['webhook-denies', 'webhook-fails'],
  ['pinned', 'pinned-arguments'],
  ['unknown', 'tool-error', 'guarded-result', ...backendReasons()],
]

function backendReasons(): readonly Reason[] {
  return reasons.filter((reason) => reason.startsWith('backend-'))
}

const isUnlisted = (reason: Reason): boolean => reason === 'unknown' || reason === 'backend-left-out'
const needsListing = (reason: Reason): boolean =>
  /^(header-mismatch|pinned|pinned-arguments|quota-exceeded)$/.test(reason)

function canMeet(first: Reason, second: Reason): boolean {
  const both = [first, second]
  if (exclusive.some((group) => both.every((reason) => group.includes(reason)))) return false
  return !(both.some(isUnlisted) && both.some(needsListing))
}

/** All pairs of reasons that one call can have at the same time. An ignored webhook rejects nothing. */
export const pairs: readonly (readonly [Reason, Reason])[] = reasons.flatMap((first, i) =>
  reasons
    .slice(i + 1)
    .filter((second) => canMeet(first, second) && first !== 'webhook-ignored' && second !== 'webhook-ignored')
    .map((second) => [first, second] as const),
)

/** A word that guardrails reject in arguments and in results. */
export const refusedWord = 'EMP-123456'

/** Arguments of a call to an item with this name. */
export function argumentsFor(name: string): Readonly<Record<string, unknown>> {
  return {
    text: has(name, 'guarded-arguments') ? refusedWord : 'hello',
    ...(has(name, 'header-mismatch') ? { region: 'north' } : {}),
    ...(has(name, 'pinned-arguments') ? { extra: 1 } : {}),
  }
}

/** Headers of a stateless call to an item with this name. */
export function headersFor(name: string): Readonly<Record<string, string>> {
  return has(name, 'header-mismatch') ? { 'mcp-param-region': 'south' } : {}
}

/** URI of a resource. A pinned one matches a template, because resources themselves cannot be pinned. */
export function uriFor(name: string): string {
  if (has(name, 'pinned')) return `test://${name}/1`
  return has(name, 'guarded-arguments') ? `test://${name}/${refusedWord}` : `test://${name}`
}
