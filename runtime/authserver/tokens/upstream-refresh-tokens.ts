/**
 * The refresh tokens of one user from one provider, across all of that user's clients.
 *
 * Some providers issue a refresh token only on first consent. This server is a single client of the provider, whichever
 * client the user signs in to. A later login without a refresh token therefore uses the newest existing refresh token
 * for the same account. As a result, several rows can share a refresh token. If the provider rotates the token, renewals
 * run one at a time, and every row with the old token gets the new token.
 * Source: reference behavior of upstream tokens at a repeated login; RFC 9700 section 4.14 (rotation).
 */
import { withLock } from '../../store/index.ts'
import { compoundKey, sha256, upstreamRowKey } from '../model/identifiers.ts'
import type { LoginSession, StoredRow } from '../model/records.ts'
import type { State } from '../storage/state.ts'

/** A provider account and its Gatehouse user. */
type ProviderAccount = Pick<StoredRow, 'userId' | 'provider' | 'subject'>

const lock = { ttlMs: 45_000, waitMs: 40_000 }

/** Runs `work` while no other replica or request changes this user's refresh tokens from this provider. */
export function lockRefreshTokens<T>(
  state: State,
  { userId, provider }: Pick<ProviderAccount, 'userId' | 'provider'>,
  work: () => Promise<T>,
): Promise<T> {
  return withLock(state.store, `upstream:${sha256(compoundKey(userId, provider))}`, lock, work)
}

/** Returns the newest refresh token of the account in these sessions, except the given token. */
export async function findNewestRefreshToken(
  state: State,
  sessions: readonly LoginSession[],
  { account, except }: { readonly account: ProviderAccount; readonly except?: string | undefined },
): Promise<string | undefined> {
  const rows = await Promise.all(rowKeysOf(sessions, account).map((id) => state.rows.get(id)))
  const [newest] = rows
    .filter((row) => row !== undefined && isRowOf(row, account) && row.refreshToken !== except)
    .filter((row) => row?.refreshToken !== undefined)
    .toSorted((a, b) => (b?.obtainedAtMs ?? 0) - (a?.obtainedAtMs ?? 0))
  return newest?.refreshToken
}

/** Replaces the old refresh token in every row for the account. */
export async function replaceRefreshToken(
  state: State,
  sessions: readonly LoginSession[],
  change: { readonly account: ProviderAccount; readonly old: string; readonly next: string },
): Promise<void> {
  const { account, old, next } = change
  await Promise.all(
    rowKeysOf(sessions, account).map(async (id) => {
      const seen = await state.rows.read(id)
      if (seen && isRowOf(seen.value, account) && seen.value.refreshToken === old)
        await state.rows.swap(id, seen, { ...seen.value, refreshToken: next })
    }),
  )
}

function rowKeysOf(sessions: readonly LoginSession[], { provider }: ProviderAccount): readonly string[] {
  return sessions
    .filter(({ providers }) => providers.includes(provider))
    .map(({ id }) => upstreamRowKey(id, provider))
}

function isRowOf(row: StoredRow, { userId, subject }: ProviderAccount): boolean {
  return row.userId === userId && row.subject === subject
}
