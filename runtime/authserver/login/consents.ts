/**
 * Consents that need not be asked for again.
 *
 * Remembered per user, client, redirect host and set of resources, for the scopes and providers that were shown. Redirects
 * to the user's own machine are never remembered: any client there could claim to be the client. Disconnecting an
 * account or signing a client out withdraws everything that was remembered for that client. What counts is the order of
 * the records, not the clocks of the replicas.
 * Source: MCP 2025-11-25 security best practices (confused deputy).
 */
import { isUnownedRedirect, redirectHost } from '../clients/redirect-uri.ts'
import { within } from '../model/scopes.ts'
import type { AuthRequest, Consent, Withdrawal } from '../model/records.ts'
import { type State } from '../storage/state.ts'
import { randomId, compoundKey } from '../model/identifiers.ts'

const rememberedMs = 90 * 24 * 3_600_000

function keyOf(userId: string, request: AuthRequest): string {
  return compoundKey(
    userId,
    request.clientId,
    redirectHost(request.redirectUri),
    ...request.resources.toSorted(),
  )
}

/** The consent that covers everything this request asks for. */
export async function findConsent(
  state: State,
  userId: string,
  request: AuthRequest,
): Promise<Consent | undefined> {
  if (isUnownedRedirect(request.redirectUri)) return undefined
  const { consent } = await standing(state, userId, request)
  return consent && within(request.scopes, consent.scopes) ? consent : undefined
}

/** What was agreed to and not withdrawn since, and the latest withdrawal. */
async function standing(
  state: State,
  userId: string,
  request: AuthRequest,
): Promise<{ consent: Consent | undefined; withdrawn: Withdrawal | undefined }> {
  const [consent, withdrawn] = await Promise.all([
    state.consents.get(keyOf(userId, request)),
    state.withdrawals.get(compoundKey(userId, request.clientId)),
  ])
  return { consent: consent?.after === (withdrawn?.id ?? '') ? consent : undefined, withdrawn }
}

/** Remembers what was agreed to on a page, together with what was agreed to before; not what was withdrawn since. */
export async function rememberConsent(
  state: State,
  userId: string,
  request: AuthRequest,
  providers: readonly string[],
  approvedAtMs: number,
): Promise<void> {
  if (isUnownedRedirect(request.redirectUri)) return
  const { consent: before, withdrawn } = await standing(state, userId, request)
  if (withdrawn && approvedAtMs <= withdrawn.atMs) return
  const scopes = [...new Set([...(before?.scopes ?? []), ...request.scopes])]
  const next = { scopes, providers, after: withdrawn?.id ?? '' }
  await state.consents.put(keyOf(userId, request), next, rememberedMs)
  // It is named by what was just written, so it must live as long.
  if (withdrawn) await state.withdrawals.touch(compoundKey(userId, request.clientId), rememberedMs)
}

/** The user changed their mind about a client: it must ask again, whatever was agreed to. */
export async function withdrawConsents(
  state: State,
  userId: string,
  clientId: string,
  nowMs: number,
): Promise<void> {
  await state.withdrawals.put(compoundKey(userId, clientId), { id: randomId(16), atMs: nowMs }, rememberedMs)
}
