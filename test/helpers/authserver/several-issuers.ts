/** Servers that accept tokens from several issuers, and the issuers. */
import type { Test } from 'tap'
import {
  type AuthenticationEvent,
  type IncomingConfig,
  makeAuthenticator,
} from '../../../runtime/incoming/index.ts'
import type { Caller } from '../../../runtime/net/index.ts'
import { startTokenIssuer, type TokenIssuer } from './token-issuer.ts'

export type Oidc = Extract<IncomingConfig, { type: 'oidc' }>

/** Starts an issuer. All issuers use the same key id. */
export async function startIssuer(t: Test): Promise<TokenIssuer> {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  return issuer
}

export function configOf({ issuer, audience, jwksUrl }: TokenIssuer) {
  return { issuer, audience, jwksUrl }
}

export function serverOf(
  t: Test,
  config: Omit<Oidc, 'type'>,
  parts: Parameters<typeof makeAuthenticator>[1] = {},
) {
  const events: AuthenticationEvent[] = []
  const authenticator = makeAuthenticator(
    { type: 'oidc', ...config },
    { observe: (event) => events.push(event), ...parts },
  )
  t.teardown(() => authenticator.close())
  return {
    authenticator,
    events,
    caller: async (token: string): Promise<Caller> => authenticator.authenticate(`Bearer ${token}`),
  }
}

/** Expects the server to reject the token as invalid with this reason. */
export async function refusal(server: ReturnType<typeof serverOf>, token: string): Promise<string> {
  const before = server.events.length
  const error: unknown = await server.caller(token).then(
    () => undefined,
    (error: unknown) => error,
  )
  const { code } = (error ?? {}) as { code?: string }
  const event = server.events.slice(before).at(-1)
  return `${code} ${event && 'reason' in event ? event.reason : ''}`
}

/** Starts three issuers. Returns them, and a configuration for each. */
export async function startThree(t: Test) {
  const [a, b, c] = await Promise.all([startIssuer(t), startIssuer(t), startIssuer(t)])
  return { a, b, c, first: configOf(a), second: configOf(b), third: configOf(c) }
}
