/**
 * Remembered consents, so that users are not asked again.
 *
 * A consent is remembered per user, client, redirect host and set of resources. A remembered consent covers the scopes
 * and providers that the page showed. A redirect to the user's own machine is never remembered, because any program
 * there could claim to be the client. Disconnecting an account or signing out a client withdraws every consent to that
 * client. The records define the order of consents and withdrawals, because the replicas' clocks differ.
 * Source: MCP 2025-11-25 security best practices (confused deputy).
 */
import { isUnownedRedirect, redirectHost } from '../clients/redirect-uri.ts'
import { compoundKey, randomId } from '../model/identifiers.ts'
import type { AuthRequest, Consent, Withdrawal } from '../model/records.ts'
import { within } from '../model/scopes.ts'
import type { State } from '../storage/state.ts'

const rememberedMs = 90 * 24 * 3_600_000

function keyOf(userId: string, { clientId, redirectUri, resources }: AuthRequest): string {
  return compoundKey(userId, clientId, redirectHost(redirectUri), ...resources.toSorted())
}

/** Returns the consent that covers everything in this request. */
export async function findConsent(
  state: State,
  userId: string,
  request: AuthRequest,
): Promise<Consent | undefined> {
  if (isUnownedRedirect(request.redirectUri)) return undefined
  const { consent } = await readConsent(state, userId, request)
  return consent && within(request.scopes, consent.scopes) ? consent : undefined
}

/** Reads the consent, unless it was withdrawn, and the latest withdrawal. */
async function readConsent(
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

/**
 * Adds the scopes and providers of an approved page to the user's consent. Does nothing if a withdrawal is newer than
 * the approval.
 */
export async function rememberConsent(
  state: State,
  userId: string,
  approved: { readonly request: AuthRequest; readonly providers: readonly string[]; readonly atMs: number },
): Promise<void> {
  const { request, providers, atMs } = approved
  if (isUnownedRedirect(request.redirectUri)) return
  const { consent: before, withdrawn } = await readConsent(state, userId, request)
  if (withdrawn && atMs <= withdrawn.atMs) return
  const scopes = [...new Set([...(before?.scopes ?? []), ...request.scopes])]
  const next = { scopes, providers, after: withdrawn?.id ?? '' }
  await state.consents.put(keyOf(userId, request), next, rememberedMs)
  // The consent refers to the withdrawal, so the withdrawal must be stored for as long as the consent.
  if (withdrawn) await state.withdrawals.touch(compoundKey(userId, request.clientId), rememberedMs)
}

/** Withdraws every consent that the user gave to the client. */
export async function withdrawConsents(
  { state, now }: { readonly state: State; readonly now: () => number },
  { userId, clientId }: { readonly userId: string; readonly clientId: string },
): Promise<void> {
  await state.withdrawals.put(compoundKey(userId, clientId), { id: randomId(16), atMs: now() }, rememberedMs)
}
