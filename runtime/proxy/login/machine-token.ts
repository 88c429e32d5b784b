/**
 * Finds the target's authorization server, and requests a token for a client without a user (client_credentials or
 * jwt-bearer). Does not retry, and stores nothing.
 * Source: RFC 6749 section 4.4; RFC 7523 section 2.1; RFC 8707; MCP extension "OAuth Client Credentials" (SEP-1046).
 */
import type { MachineGrantSource, OAuthSettings, TargetAddress } from '../../config/index.ts'
import {
  type Challenge,
  checkGrantAudience,
  clientCredentialsGrant,
  type Fetch,
  hintedClient,
  hintedTokens,
  hintFor,
  jwtBearerGrant,
  type TokenSet,
} from '../../oauth/index.ts'
import { locate, type Located, type LocateSettings, uriOf } from '../../outgoing/index.ts'

export interface MachineSettings extends LocateSettings, Pick<OAuthSettings, 'required'> {
  readonly machineGrant: MachineGrantSource
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
export async function requestMachineToken(
  { server, issuer, scopes, resource, authorizeParams }: Located,
  { settings, fetch, signal, now }: MachineTokenParts,
): Promise<TokenSet> {
  const hint = hintFor(settings.provider)
  // Without an issuer, the configured endpoint is the only identifier that both sides share.
  const assertionAudience = issuer === undefined ? server.token_endpoint : undefined
  const { client, assertion } = await settings.machineGrant({
    audience: issuer ?? assertionAudience,
    fetch,
    signal,
  })
  const audience = authorizeParams?.['audience']
  const request = {
    server,
    client: client && hintedClient(hint, { ...client, assertionAudience }),
    scopes,
    resource,
    map: hintedTokens(hint),
    fetch,
    signal,
    now,
  }
  if (assertion === undefined) return clientCredentialsGrant({ ...request, audience })
  const isConfigured = settings.issuer !== undefined || settings.tokenUrl !== undefined
  if (!isConfigured) checkGrantAudience(assertion, server)
  return jwtBearerGrant({ ...request, assertion, extra: audience === undefined ? {} : { audience } })
}
