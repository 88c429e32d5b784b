/**
 * Binds tokens at the token endpoint: to the key with which the client signed its DPoP proof, and to the certificate of
 * its connection.
 *
 * The proof is checked before the client is authenticated and before the grant is read. A request for a nonce, or an
 * invalid proof, therefore uses up neither an assertion nor a code. The proof is marked as used only after the grant
 * was accepted, so that untrusted clients cannot fill the store.
 * Source: RFC 9449 sections 5, 8 and 11.1; RFC 8705 section 3.
 */
import { GatehouseError, parseDuration } from '../../../schemas/index.ts'
import type { AuthServerConfig } from '../../config/index.ts'
import { certificateThumbprint, type Exchange } from '../../net/index.ts'
import {
  type TokenBinding,
  makeNonces,
  makeReplayCheck,
  ProofRefused,
  proofTarget,
  type VerifiedProof,
  verifyProof,
} from '../../oauth/index.ts'
import type { AuthServerContext, TokenProofs } from '../login/context.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { tooManyRequests } from '../storage/limits.ts'

/** Returns undefined if the server does not issue bound tokens. */
export function makeTokenProofs(
  { dpop }: AuthServerConfig,
  { state, keys, now }: Pick<AuthServerContext, 'state' | 'keys' | 'now'>,
): TokenProofs | undefined {
  if (dpop === undefined || dpop.mode === 'off') return undefined
  const maxAgeMs = parseDuration(dpop.proofMaxAge)
  const store = state.store.namespace('dpop:')
  return {
    isRequired: dpop.mode === 'required',
    maxAgeMs,
    mark: dpop.replay === 'store' ? makeReplayCheck({ store, maxAgeMs, now }) : undefined,
    nonces: dpop.requireNonce
      ? makeNonces({ secrets: () => keys().sealSecrets, purpose: 'token', now })
      : undefined,
  }
}

/** The bindings that a client requires for its tokens. */
interface BindingRules {
  readonly isBound?: boolean
  readonly isCertificateBound?: boolean
}

/** The key and the certificate whose possession a token request proved. */
export interface ProvedBinding {
  /** Key and certificate that the new token is bound to. */
  readonly binding: TokenBinding
  /** Thumbprint of the connection's certificate, even if the new token is not bound to it. */
  readonly certificate: string | undefined
}

/**
 * Returns the key and the certificate that the new token is bound to. `proof` is the result of `readTokenProof`. Throws
 * OAuthError invalid_dpop_proof and unauthorized_client if the client needs a proof, and invalid_request if the client
 * needs a certificate.
 */
export function bindToken(
  exchange: Exchange,
  {
    proof,
    isBound = false,
    isCertificateBound = false,
  }: BindingRules & { readonly proof: VerifiedProof | undefined },
  context: AuthServerContext,
): ProvedBinding {
  const certificate = certificateThumbprint(exchange.req)
  if (isCertificateBound && certificate === undefined)
    throw new OAuthError(
      'invalid_request',
      'the client must present a TLS client certificate that this server accepts',
    )
  if (isBound && proof === undefined) throw missingProofError(context)
  const bindsCertificate = isCertificateBound || context.config.bindsCertificates === true
  return {
    certificate,
    binding: { jkt: proof?.jkt, x5t: bindsCertificate ? certificate : undefined },
  }
}

function missingProofError({ tokenProofs }: AuthServerContext): unknown {
  if (tokenProofs !== undefined) return toProofError(new ProofRefused('missing'))
  // A reloaded file can declare such a client before `dpop` takes effect.
  return new OAuthError(
    'unauthorized_client',
    'the client requires bound tokens, but DPoP is off on this server',
  )
}

/**
 * Returns the verified proof of a token request. Without a proof, returns undefined unless the server requires a proof.
 * Throws OAuthError invalid_dpop_proof, use_dpop_nonce.
 */
export async function readTokenProof(
  exchange: Exchange,
  { tokenProofs, urls, now }: AuthServerContext,
): Promise<VerifiedProof | undefined> {
  if (tokenProofs === undefined) return undefined
  const { dpop: header } = exchange.req.headers
  if (header === undefined && !tokenProofs.isRequired) return undefined
  const { nonces, maxAgeMs } = tokenProofs
  const own = proofTarget(urls.token)
  try {
    const proof = await verifyProof(typeof header === 'string' ? header : undefined, {
      method: 'POST',
      isTarget: (url) => url === own,
      maxAgeMs,
      nowMs: now(),
      isNonce: nonces && ((nonce) => nonces.isValid(nonce)),
    })
    if (nonces && proof.nonce !== undefined && nonces.isAging(proof.nonce))
      exchange.res.setHeader('DPoP-Nonce', nonces.current())
    return proof
  } catch (error) {
    throw toProofError(error, nonces?.current())
  }
}

/** Marks the proof as used. Throws OAuthError invalid_dpop_proof for a used proof. */
export async function markTokenProof(
  proof: VerifiedProof,
  clientId: string,
  { tokenProofs }: AuthServerContext,
): Promise<void> {
  try {
    await tokenProofs?.mark?.(proof, clientId)
  } catch (error) {
    throw toProofError(error)
  }
}

function toProofError(error: unknown, nonce?: string): unknown {
  if (error instanceof GatehouseError && error.code === 'RATE_LIMITED')
    return tooManyRequests(Number(error.headers['retry-after']) * 1000)
  if (!(error instanceof ProofRefused)) return error
  if (error.reason === 'nonce' && nonce !== undefined) {
    const text = 'the DPoP proof must contain the nonce in the DPoP-Nonce header'
    return new OAuthError('use_dpop_nonce', text, { headers: { 'DPoP-Nonce': nonce }, cause: error })
  }
  const text =
    error.reason === 'missing' ? 'a DPoP proof is required' : 'the DPoP proof is invalid or was already used'
  return new OAuthError('invalid_dpop_proof', text, { cause: error })
}
