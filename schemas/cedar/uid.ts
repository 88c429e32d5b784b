/** Entity references, in either of their JSON forms. Source: Cedar, entity JSON format. */

export interface Uid {
  readonly type: string
  readonly id: string
}

/** Equal for equal entities. A type cannot hold NUL, so no two entities meet. */
export function keyOf({ type, id }: Uid): string {
  return `${type}\0${id}`
}

/** `{type, id}` or `{__entity: {type, id}}`; undefined for anything else. */
export function toUid(value: unknown): Uid | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { __entity: inner = value }: { __entity?: unknown } = value
  if (typeof inner !== 'object' || inner === null) return undefined
  const { type, id }: { type?: unknown; id?: unknown } = inner
  return typeof type === 'string' && typeof id === 'string' ? { type, id } : undefined
}
