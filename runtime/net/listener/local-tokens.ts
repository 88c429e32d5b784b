/**
 * Restricts a listener to local programs that have one of its tokens. Protects loopback ports, which every user of the
 * machine can reach. The restriction applies before any other check, and compares digests in constant time.
 */
import { hash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { sendProblem } from '../problem.ts'

/** SHA-256 digests of the accepted tokens in hexadecimal, keyed by the name of the program that has the token. */
export type TokenDigests = Readonly<Record<string, string>>

/** Returns the digest under which a listener stores a token. */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'hex')
}

/** The tokens that a listener requires. */
export interface LocalTokens {
  readonly digests: TokenDigests
  /** Path prefixes that require no token, because their handlers check the request. Default: none. */
  readonly openPaths?: readonly string[]
}

/**
 * Returns a handler that calls `handler` for requests with an accepted bearer token, and sends 401 to all others. Returns
 * `handler` itself when no token is required.
 */
export function requireToken<Rest extends unknown[]>(
  tokens: LocalTokens | undefined,
  handler: (req: IncomingMessage, res: ServerResponse, ...rest: Rest) => unknown,
): (req: IncomingMessage, res: ServerResponse, ...rest: Rest) => unknown {
  if (!tokens) return handler
  const { digests, openPaths = [] } = tokens
  const accepts = localTokenCheck(digests)
  return (req, res, ...rest) => {
    const isOpen = openPaths.some((path) => req.url?.startsWith(path))
    if (isOpen || accepts(req.headers.authorization)) return handler(req, res, ...rest)
    sendProblem(
      res,
      new GatehouseError('CREDENTIALS_MISSING', {
        headers: { 'www-authenticate': 'Bearer realm="gatehouse"' },
      }),
    )
  }
}

/** Returns a check for the value of an Authorization header: true for a bearer token with one of the digests. */
export function localTokenCheck(digests: TokenDigests): (authorization: string | undefined) => boolean {
  const accepted = Object.values(digests).map((digest) => Buffer.from(digest, 'hex'))
  return (authorization) => {
    const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? ''
    const found = hash('sha256', token, 'buffer')
    // Compare with every digest, so that the time does not depend on which digest matches.
    return (
      accepted.filter((digest) => digest.length === found.length && timingSafeEqual(digest, found)).length > 0
    )
  }
}
