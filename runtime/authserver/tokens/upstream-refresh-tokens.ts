/**
 * The refresh tokens of one user at one provider, over all clients of that user.
 *
 * Some providers give a refresh token at the first consent only. This server is one client to a provider, whatever
 * client the user signs in to: a later login that brings none goes on with the newest one that the provider gave for
 * the same account. Rows then share a refresh token, so a provider that rotates it is asked by one at a time, and every
 * row that held the old one gets the new one.
 * Source: reference behaviour of upstream tokens at a repeated login; RFC 9700 section 4.14 (rotation).
 */
import { withLock } from '../../store/index.ts'
import type { StoredRow, LoginSession } from '../model/records.ts'
import { type State } from '../storage/state.ts'
import { sha256, compoundKey, upstreamRowKey } from '../model/identifiers.ts'

/** An account at a provider, and whose it is here. */
export type AccountOf = Pick<StoredRow, 'userId' | 'provider' | 'subject'>

const lock = { ttlMs: 45_000, waitMs: 40_000 }

/** Runs `work` while nobody else, on whatever replica, changes the refresh tokens of this user at this provider. */
export function exclusively<T>(
  state: State,
  { userId, provider }: Pick<AccountOf, 'userId' | 'provider'>,
  work: () => Promise<T>,
): Promise<T> {
  return withLock(state.store, `upstream:${sha256(compoundKey(userId, provider))}`, lock, work)
}

/** The newest refresh token of the account in these sessions, other than `except`. */
export async function newestRefreshToken(
  state: State,
  sessions: readonly LoginSession[],
  account: AccountOf,
  except?: string,
): Promise<string | undefined> {
  const rows = await Promise.all(idsOf(sessions, account).map((id) => state.rows.get(id)))
  const [newest] = rows
    .filter((row) => row !== undefined && isOf(row, account) && row.refreshToken !== except)
    .filter((row) => row?.refreshToken !== undefined)
    .toSorted((a, b) => (b?.obtainedAtMs ?? 0) - (a?.obtainedAtMs ?? 0))
  return newest?.refreshToken
}

/** Gives every row of the account that holds `old` the token that replaced it. */
export async function replaceRefreshToken(
  state: State,
  sessions: readonly LoginSession[],
  account: AccountOf,
  old: string,
  next: string,
): Promise<void> {
  await Promise.all(
    idsOf(sessions, account).map(async (id) => {
      const seen = await state.rows.read(id)
      if (seen && isOf(seen.value, account) && seen.value.refreshToken === old)
        await state.rows.swap(id, seen, { ...seen.value, refreshToken: next })
    }),
  )
}

function idsOf(sessions: readonly LoginSession[], { provider }: AccountOf): readonly string[] {
  return sessions
    .filter(({ providers }) => providers.includes(provider))
    .map(({ id }) => upstreamRowKey(id, provider))
}

/** A subject that was made from an access token belongs to no account that could be told again. */
function isOf(row: StoredRow, { userId, subject }: AccountOf): boolean {
  return row.userId === userId && row.subject === subject
}
