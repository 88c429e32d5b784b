/** Entity references, in either of their two JSON forms. Source: Cedar, entity JSON format. */

export interface Uid {
  readonly type: string
  readonly id: string
}

/** Returns the same key for equal entities. Keys of different entities differ, because types contain no NUL. */
export function keyOf({ type, id }: Uid): string {
  return `${type}\0${id}`
}

/** Parses `{type, id}` or `{__entity: {type, id}}`. Returns undefined for anything else. */
export function toUid(value: unknown): Uid | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { __entity: inner = value }: { __entity?: unknown } = value
  if (typeof inner !== 'object' || inner === null) return undefined
  const { type, id }: { type?: unknown; id?: unknown } = inner
  return typeof type === 'string' && typeof id === 'string' ? { type, id } : undefined
}
