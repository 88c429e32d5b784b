/** Digests of the tokens that a listener requires when `gatehouse up` starts this program. */
import { isFields, invalidConfig } from '../../../schemas/index.ts'

/**
 * `gatehouse up` sets this variable to a JSON object that maps the name of each local program to the SHA-256 digest of
 * its token.
 */
export const localTokensVariable = 'GATEHOUSE_LOCAL_TOKENS'

/**
 * Returns undefined when the listener requires no token. Throws INVALID_CONFIG for an invalid value, because the
 * listener must not open without its protection.
 */
export function readLocalTokens(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> | undefined {
  const text = env[localTokensVariable]
  if (text === undefined) return undefined
  let digests: unknown
  try {
    digests = JSON.parse(text)
  } catch {
    digests = undefined
  }
  if (!isFields(digests) || !Object.values(digests).every(isDigest)) {
    throw invalidConfig(`${localTokensVariable}: must be a JSON object whose values are SHA-256 digests`)
  }
  return digests as Record<string, string>
}

function isDigest(value: unknown): boolean {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
}
