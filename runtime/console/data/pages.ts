/**
 * Paginates lists, and converts values for responses. A cursor contains the last entry of the page, so added or removed
 * entries do not shift pages.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { ListPage } from '../api.ts'

const defaultLimit = 50
const maxLimit = 200

/** Facts about a list's origin, included in every page. */
export interface ListFacts {
  readonly replica: string
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** `all` must be sorted by key. */
export function pageOf<T>(
  all: readonly T[],
  { cursor, limit }: { readonly cursor: string | undefined; readonly limit: number },
  keyOf: (one: T) => string,
  { replica, now }: ListFacts,
): ListPage<T> {
  const after = cursor === undefined ? undefined : Buffer.from(cursor, 'base64url').toString()
  const start = after === undefined ? 0 : all.findIndex((one) => keyOf(one) > after)
  const items = start < 0 ? [] : all.slice(start, start + limit)
  const last = items.at(-1)
  const more = last !== undefined && start + limit < all.length
  return {
    items,
    ...given('next', more ? Buffer.from(keyOf(last)).toString('base64url') : undefined),
    replica,
    asOf: iso(now),
  }
}

/** Throws BAD_REQUEST. */
export function limitOf(query: URLSearchParams): number {
  const text = query.get('limit')
  if (text === null) return defaultLimit
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > maxLimit)
    throw new GatehouseError('BAD_REQUEST', { detail: `limit must be a whole number from 1 to ${maxLimit}` })
  return limit
}

export function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** Returns `{ [name]: value }`, or an empty object when the value is undefined. */
export function given<K extends string, V>(name: K, value: V | undefined): { readonly [N in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { readonly [N in K]: V })
}
