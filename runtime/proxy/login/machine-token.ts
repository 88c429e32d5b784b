/**
 * Finds the target's authorization server, and requests a token without a user (client_credentials, jwt-bearer or
 * id-jag). Does not retry, and stores nothing.
 * Source: RFC 6749 section 4.4; RFC 7523 section 2.1; RFC 8707; MCP extension "OAuth Client Credentials" (SEP-1046).
 */
import type { Log } from '../../net/index.ts'
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
  type Prover,
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
  readonly log: Log
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

/** Without a prover, the token is not bound to a key. Rejects with OAuthClientError, or with the signal's reason. */
export async function requestMachineToken(
  { server, issuer, scopes, resource, authorizeParams, dpop: use }: Located,
  { settings, fetch, signal, now, log }: MachineTokenParts,
  prover?: Prover,
): Promise<TokenSet> {
  const hint = hintFor(settings.provider)
  // Without an issuer, the configured endpoint is the only identifier that both sides share.
  const assertionAudience = issuer === undefined ? server.token_endpoint : undefined
  const { client, assertion } = await settings.machineGrant({
    audience: issuer ?? assertionAudience,
    resource,
    scopes,
    fetch,
    signal,
    log,
  })
  const audience = authorizeParams?.['audience']
  const request = {
    server,
    client: client && hintedClient(hint, { ...client, assertionAudience }),
    scopes,
    resource,
    map: hintedTokens(hint),
    dpop: use && prover && { prover, use },
    fetch,
    signal,
    now,
  }
  if (assertion === undefined) return clientCredentialsGrant({ ...request, audience })
  const isConfigured = settings.issuer !== undefined || settings.tokenUrl !== undefined
  if (!isConfigured) checkGrantAudience(assertion, server)
  return jwtBearerGrant({ ...request, assertion, extra: audience === undefined ? {} : { audience } })
}
