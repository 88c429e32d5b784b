/**
 * The two opaque tokens: authorization codes and refresh tokens.
 *
 * A code is `gh_ac_<random>.<mac>`, a refresh token `gh_rt_<family>.<generation>.<mac>`. The MAC lets this server
 * reject forged tokens without the store. The fixed prefix lets secret scanners find leaked tokens. A hash of the
 * random part is the key in the store. A refresh token is derived from its family and generation, so a repeated
 * rotation yields the same successor without storing tokens.
 * Source: docs/reference/specification/external-auth.md (hmacSecretRefs); RFC 6749 section 10.10; RFC 9700 section
 * 4.14.
 */
import { randomId } from '../model/identifiers.ts'
import type { KeyRing } from './key-ring.ts'

const codeForm = /^gh_ac_([\w-]{43})\.([\w-]{43})$/
const refreshForm = /^gh_rt_([\w-]{43})\.(0|[1-9]\d{0,8})\.([\w-]{43})$/

export function makeCode(keys: KeyRing): { code: string; id: string } {
  const id = randomId()
  return { code: `gh_ac_${id}.${keys.mac('code', id)}`, id }
}

/** Returns the id of the code; undefined when this server did not issue it. */
export function readCode(keys: KeyRing, code: string): string | undefined {
  const [, id = '', mac = ''] = codeForm.exec(code) ?? []
  return id !== '' && keys.isMac('code', id, mac) ? id : undefined
}

export function makeRefreshToken(keys: KeyRing, family: string, generation: number): string {
  return `gh_rt_${family}.${generation}.${keys.mac('refresh', `${family}.${generation}`)}`
}

/** Returns undefined when this server did not issue the token. */
export function readRefreshToken(
  keys: KeyRing,
  token: string,
): { family: string; generation: number } | undefined {
  const [, family = '', generation = '', mac = ''] = refreshForm.exec(token) ?? []
  if (family === '' || !keys.isMac('refresh', `${family}.${generation}`, mac)) return undefined
  return { family, generation: Number(generation) }
}
