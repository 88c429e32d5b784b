/**
 * Finds the target's authorization server, and requests a token for a client without a user (client_credentials). Does
 * not retry, and stores nothing.
 * Source: RFC 6749 section 4.4; RFC 8707; MCP extension "OAuth Client Credentials" (SEP-1046).
 */
import type { OAuthSettings, TargetAddress } from '../../config/index.ts'
import {
  type Challenge,
  clientCredentialsGrant,
  type Fetch,
  hintedClient,
  hintedTokens,
  hintFor,
  type OAuthClient,
  type TokenSet,
} from '../../oauth/index.ts'
import { locate, type Located, type LocateSettings, uriOf } from '../../outgoing/index.ts'

export interface MachineSettings extends LocateSettings, Pick<OAuthSettings, 'required'> {
  readonly machineClient: () => OAuthClient
}

export interface MachineTokenParts {
  readonly settings: MachineSettings
  readonly target: TargetAddress
  readonly fetch: Fetch
  readonly signal: AbortSignal
  readonly now: () => number
}

/** `url` is the URL that the target protects. Rejects with OAuthClientError, or with the signal's reason. */
export function locateForMachine(
  { settings, target, fetch, signal }: MachineTokenParts,
  url: string,
  challenge: Challenge | undefined,
): Promise<Located> {
  const targetUri = uriOf(target)
  return locate({
    settings,
    targetUri,
    url: target.path === undefined ? url : targetUri,
    challenge,
    fetch,
    signal,
  })
}

/** Rejects with OAuthClientError, or with the signal's reason. */
export function requestMachineToken(
  { server, issuer, scopes, resource, authorizeParams }: Located,
  { settings, fetch, signal, now }: MachineTokenParts,
): Promise<TokenSet> {
  const hint = hintFor(settings.provider)
  const client = settings.machineClient()
  return clientCredentialsGrant({
    server,
    // Without an issuer, the configured endpoint is the only identifier that both sides share.
    client: hintedClient(hint, {
      ...client,
      assertionAudience: issuer === undefined ? server.token_endpoint : undefined,
    }),
    scopes,
    resource,
    audience: authorizeParams?.['audience'],
    map: hintedTokens(hint),
    fetch,
    signal,
    now,
  })
}
