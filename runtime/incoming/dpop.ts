/**
 * Checks that the sender of an access token may use it: a token that is bound to a key requires a DPoP proof, and a token
 * that is bound to a certificate requires a connection with that certificate.
 *
 * The token check may come from the cache, but every request needs its own proof. A bound token is never accepted as a
 * bearer token, even if DPoP is off, and an unbound token is never accepted with a proof. A token that is bound in any
 * other way is rejected.
 * Source: RFC 9449 sections 4.3 and 7; RFC 8705 section 3; RFC 7800 section 3.
 */
import { randomBytes } from 'node:crypto'
import { GatehouseError, parseDuration } from '../../schemas/index.ts'
import type { Caller } from '../net/index.ts'
import {
  makeNonces,
  makeReplayCheck,
  type Nonces,
  ProofRefused,
  proofTarget,
  readConfirmation,
  TokenRefused,
  type VerifiedProof,
  verifyProof,
} from '../oauth/index.ts'
import type { Store } from '../store/index.ts'
import type { AuthScheme } from './challenge.ts'
import { type OidcConfig, resourceUrl } from './config.ts'

/** The parts of a request that a proof covers. */
export interface ProvedRequest {
  readonly method: string
  /** Path as this process received it. */
  readonly path: string
  readonly proof: string | undefined
  /** Thumbprint of the certificate that the client presented on this connection. */
  readonly certificate?: string | undefined
}

export interface DpopParts {
  /**
   * Store that replicas must share. The store contains used proofs and, without `nonceSecrets`, the secret for nonces.
   */
  readonly store: Store
  /** Secrets for nonces, with the current secret first. */
  readonly nonceSecrets?: (() => readonly Uint8Array[]) | undefined
}

export interface ProofCheck {
  /** Rejects with ProofRefused, or with errors from the store. Resolves to a nonce that the client should use next. */
  check(caller: Caller, jkt: string, request: ProvedRequest): Promise<string | undefined>
  /** Returns the nonce that a client must use. */
  nonce(): Promise<string>
}

/**
 * Throws TokenRefused unless the scheme and the connection's certificate match the token. Returns the thumbprint of the
 * key that a proof must be signed with; undefined if the token needs no proof. `certificate` is the thumbprint of the
 * certificate.
 */
export function boundKey(
  { claims }: Caller,
  { scheme, certificate }: { readonly scheme: AuthScheme; readonly certificate: string | undefined },
): string | undefined {
  const claim = claims['cnf'] ?? undefined
  const confirmation = claim === undefined ? {} : readConfirmation(claim)
  if (scheme === 'Bearer' && (!confirmation || confirmation.jkt !== undefined))
    throw new TokenRefused('bound')
  if (!confirmation) throw new TokenRefused('confirmation')
  if (scheme === 'DPoP' && confirmation.jkt === undefined) throw new TokenRefused('unbound')
  if (confirmation.x5t !== undefined && confirmation.x5t !== certificate)
    throw new TokenRefused('certificate')
  return confirmation.jkt
}

/** Returns undefined if this server does not accept bound tokens. */
export function makeProofCheck(
  config: OidcConfig,
  parts: DpopParts | undefined,
  now: () => number,
): ProofCheck | undefined {
  const { dpop } = config
  const resource = resourceUrl(config)
  const own = resource === undefined ? undefined : proofTarget(resource)
  if (dpop === undefined || dpop.mode === 'off') return undefined
  if (own === undefined)
    throw new GatehouseError('INVALID_CONFIG', { detail: 'DPoP requires a resource URL' })
  if (parts === undefined) throw new GatehouseError('INVALID_CONFIG', { detail: 'DPoP requires a store' })
  const { store } = parts
  const base: string = own
  const maxAgeMs = parseDuration(dpop.proofMaxAge)
  const mark = dpop.replay === 'store' ? makeReplayCheck({ store, maxAgeMs, now }) : undefined
  const nonces = dpop.requireNonce ? lazyNonces(parts, now) : undefined

  async function check(caller: Caller, jkt: string, request: ProvedRequest): Promise<string | undefined> {
    const known = await nonces?.()
    const urls = endpointUrls(base, request.path)
    const proof = await verifyProof(request.proof, {
      method: request.method,
      isTarget: (url) => urls.includes(url),
      accessToken: caller.token,
      maxAgeMs,
      nowMs: now(),
      isNonce: known && ((nonce) => known.isValid(nonce)),
    })
    if (proof.jkt !== jkt) throw new ProofRefused('key')
    await mark?.(proof, caller.key)
    return nextNonce(known, proof)
  }

  return {
    check,
    nonce: async () => (await nonces?.())?.current() ?? '',
  }
}

function nextNonce(nonces: Nonces | undefined, { nonce }: VerifiedProof): string | undefined {
  return nonces && nonce !== undefined && nonces.isAging(nonce) ? nonces.current() : undefined
}

/** Returns a function that reads the secret for nonces from the store once, if no secrets are given. */
function lazyNonces({ store, nonceSecrets }: DpopParts, now: () => number): () => Promise<Nonces> {
  const make = (secrets: () => readonly Uint8Array[]) => makeNonces({ secrets, purpose: 'resource', now })
  let nonces = nonceSecrets && make(nonceSecrets)
  return async () => {
    if (nonces) return nonces
    const secrets = [Buffer.from(await storedSecret(store), 'base64url')]
    nonces ??= make(() => secrets)
    return nonces
  }
}

const secretKey = 'nonce-secret'

async function storedSecret(store: Store): Promise<string> {
  await store.set(secretKey, randomBytes(32).toString('base64url'), { onlyIf: 'absent' })
  const secret = await store.get(secretKey)
  if (secret === undefined) throw new GatehouseError('STORE_DOWN')
  return secret
}

/**
 * Returns the URLs that clients may use for an endpoint, as `proofTarget` formats them: the resource URL `own`, and the
 * request's path appended to the origin, to the parent of `own` and to `own`. A reverse proxy may remove a prefix from
 * the path or replace the path. The Host header and X-Forwarded-* headers are not used, because the sender chooses
 * them.
 */
function endpointUrls(own: string, path: string): readonly string[] {
  const { origin } = new URL(own)
  const parent = own.length > origin.length ? own.slice(0, own.lastIndexOf('/')) : own
  return [own, ...[origin, parent, own].map((base) => `${base}${path.replace(/\/+$/, '')}`)]
}
