/**
 * Consents that need not be asked for again.
 *
 * Remembered per person, client, redirect host and set of resources, for the scopes and providers that were shown. Redirects
 * to the person's own machine are never remembered: any program there could claim to be the client.
 * Source: design, section 4 "consent"; MCP 2025-11-25 security best practices (confused deputy).
 */
import { isUnownedRedirect, redirectHost } from '../clients/redirect-uri.ts'
import { within } from '../clients/scopes.ts'
import type { AuthRequest, Consent } from '../storage/records.ts'
import { key, type State } from '../storage/state.ts'

const keptMs = 90 * 24 * 3_600_000

function keyOf(userId: string, request: AuthRequest): string {
  return key(userId, request.clientId, redirectHost(request.redirectUri), ...request.resources.toSorted())
}

/** The consent that covers everything this request asks for. */
export async function findConsent(
  state: State,
  userId: string,
  request: AuthRequest,
): Promise<Consent | undefined> {
  if (isUnownedRedirect(request.redirectUri)) return undefined
  const consent = await state.consents.get(keyOf(userId, request))
  return consent && within(request.scopes, consent.scopes) ? consent : undefined
}

/** Remembers what was agreed to, together with what was agreed to before. */
export async function rememberConsent(
  state: State,
  userId: string,
  request: AuthRequest,
  providers: readonly string[],
): Promise<void> {
  if (isUnownedRedirect(request.redirectUri)) return
  const before = await state.consents.get(keyOf(userId, request))
  const scopes = [...new Set([...(before?.scopes ?? []), ...request.scopes])]
  await state.consents.put(keyOf(userId, request), { scopes, providers }, keptMs)
}
