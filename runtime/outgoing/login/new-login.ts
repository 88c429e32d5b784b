import { uriOf, type KeptLogin } from './kept-login.ts'
import { locate } from './locate.ts'
import type { LoginParts, WantedLogin } from './login-parts.ts'
import { signIn } from './sign-in.ts'

/**
 * Finds the authorization server for a rejected request, and signs in there. Adds a line to `skipped` for each document
 * that was not usable. Rejects like `locate` and `signIn`.
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
