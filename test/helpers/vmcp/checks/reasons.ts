/**
 * Reasons to reject an operation, as names of what is called: whatever is called `unauthorized--limited` is forbidden by
 * a policy, and its rate limit is used up. All other parts of the rig derive their settings from these names.
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

/** Backends of the rig. Those that nothing is known of have no tools. */
export type BackendName = 'live' | 'down' | 'out'

const separator = '--'

/** Name for something that is rejected for all of these reasons; `free` for none. */
export function nameFor(...all: readonly Reason[]): string {
  return all.length === 0 ? 'free' : all.join(separator)
}

/** True when a name, or a text with the name in it, has this reason. */
export function has(name: string, reason: Reason): boolean {
  // One reason may begin with the name of another.
  return new RegExp(`(^|[^a-z-]|--)${reason}($|[^a-z-]|--)`).test(name)
}

export function backendOf(name: string): BackendName {
  if (has(name, 'backend-down')) return 'down'
  return has(name, 'backend-left-out') ? 'out' : 'live'
}

/** These exclude each other, because they describe the same property of a tool or of a call. */
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

/** A word that guardrails refuse in arguments and in results. */
export const refusedWord = 'EMP-123456'

/** Arguments of a call of something with this name. */
export function argumentsFor(name: string): Readonly<Record<string, unknown>> {
  return {
    text: has(name, 'guarded-arguments') ? refusedWord : 'hello',
    ...(has(name, 'header-mismatch') ? { region: 'north' } : {}),
    ...(has(name, 'pinned-arguments') ? { extra: 1 } : {}),
  }
}

/** Headers of a stateless call of something with this name. */
export function headersFor(name: string): Readonly<Record<string, string>> {
  return has(name, 'header-mismatch') ? { 'mcp-param-region': 'south' } : {}
}

/** URI of a resource; of a template where templates are pinned and resources are not. */
export function uriFor(name: string): string {
  if (has(name, 'pinned')) return `test://${name}/1`
  return has(name, 'guarded-arguments') ? `test://${name}/${refusedWord}` : `test://${name}`
}
