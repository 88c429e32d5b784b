/** Signs in to a target, and renews a login. Stores nothing. */
import { OAuthClientError, Prover, type TokenProofOptions } from '../../oauth/index.ts'
import { uriOf, type KeptLogin } from './kept-login.ts'
import { locate } from './locate.ts'
import type { LoginParts, WantedLogin } from './login-parts.ts'
import { type ClientParts, renewedClient } from './registration.ts'
import { boundKey, renewTokens, signIn } from './sign-in.ts'

/**
 * Finds the authorization server for a rejected request, and signs in there. Adds a line to `skipped` for each document
 * that was not usable. Rejects with the errors of `locate` and `signIn`.
 */
export async function signInFor(
  { url, challenge, scopes }: WantedLogin,
  parts: LoginParts,
  { skipped, adopt }: { readonly skipped: string[]; readonly adopt: (login: KeptLogin) => void },
): Promise<void> {
  const { settings, target, fetch, signal, log } = parts
  const found = await locate({
    settings,
    targetUri: uriOf(target),
    // A target with a configured path has only one endpoint.
    url: target.path === undefined ? url : uriOf(target),
    challenge,
    fetch,
    signal,
    onSkipped: (where, reason) => void skipped.push(`${reason} at ${where}`),
  })
  const located = scopes === undefined ? found : { ...found, scopes: [...new Set(scopes)] }
  await signIn(located, parts, (login) => {
    adopt({ located, ...login })
    log.info('signed in to the target')
  })
}

/** Returns the login with new tokens. Rejects with OAuthClientError, or with the signal's reason. */
export async function renewLogin(login: KeptLogin, parts: ClientParts): Promise<KeptLogin> {
  const { located, tokens } = login
  const { refreshToken } = tokens
  if (refreshToken === undefined) {
    throw new OAuthClientError('refused', 'the login cannot be renewed', { error: 'invalid_grant' })
  }
  const client = await renewedClient(login, located, parts)
  const dpop = proofOptions(login, parts)
  const renewed = await renewTokens(located, client.client, { refreshToken, dpop }, parts)
  return {
    ...login,
    ...client,
    // When a renewal returns no ID token, the previous ID token still identifies the user.
    tokens: { ...renewed, idToken: renewed.idToken ?? tokens.idToken },
    // A refresh token stays bound to its key.
    proofKey: login.proofKey ?? boundKey(renewed, dpop),
  }
}

/** Uses the login's own key, or a new key for a login that is not bound yet. */
function proofOptions(
  { located, proofKey }: KeptLogin,
  { settings, now }: ClientParts,
): TokenProofOptions | undefined {
  const use = located.dpop ?? (settings.dpop === 'auto' ? 'demanded' : undefined)
  if (proofKey === undefined) return use && { prover: new Prover(undefined, now), use }
  return { prover: new Prover(proofKey, now), use: use === 'required' ? use : 'offered' }
}
