/** A server that authenticates each request and accepts bound tokens, with an issuer. */
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { type DpopParts, makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { Exchange, pipeline, sendProblem } from '../../../runtime/net/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import type { Dpop } from '../../../schemas/index.ts'
import { startIssuer } from '../authserver/several-issuers.ts'
import type { TokenIssuer } from '../authserver/token-issuer.ts'

export const resource = 'https://mcp.example/mcp'
export const usual: Dpop = { mode: 'optional', requireNonce: false, proofMaxAge: '60s', replay: 'store' }

export interface Rig {
  readonly idp: TokenIssuer
  readonly reasons: readonly string[]
  send(headers: Record<string, string | string[]>, method?: string, path?: string): Promise<Answer>
}

interface Answer {
  readonly status: number
  readonly challenge: string | null
  readonly nonce: string | null
  readonly cache: string | null
  readonly error: string | undefined
}

/** Starts a server that authenticates each request, and an issuer. */
export async function rig(
  t: Test,
  dpop: Partial<Dpop> | undefined,
  more: {
    readonly idp?: TokenIssuer
    readonly parts?: DpopParts
    readonly now?: () => number
    readonly issuers?: readonly TokenIssuer[]
  } = {},
): Promise<Rig> {
  const idp = more.idp ?? (await startIssuer(t))
  const reasons: string[] = []
  const { issuer, audience, jwksUrl } = idp
  const authenticator = makeAuthenticator(
    {
      type: 'oidc',
      oidc: { issuer, audience, jwksUrl, resource, dpop: dpop && { ...usual, ...dpop } },
      issuers: more.issuers?.map((other) => ({ issuer: other.issuer, audience, jwksUrl: other.jwksUrl })),
    },
    {
      now: more.now,
      observe: (event) => reasons.push('reason' in event ? event.reason : event.kind),
      dpop: more.parts ?? { store: makeMemoryStore() },
    },
  )
  t.teardown(() => authenticator.close())
  const handle = pipeline<Exchange>(
    {
      route: authenticator.route,
      authenticate: authenticator.stage,
      dispatch: ({ res, caller }) => void res.end(JSON.stringify({ subject: caller?.subject })),
      recover: (exchange, error) => {
        if (!authenticator.sendChallenge(exchange, error)) sendProblem(exchange.res, error)
      },
    },
    Exchange,
  )
  const server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  return {
    idp,
    reasons,
    async send(headers, method = 'POST', path = '/mcp') {
      const pairs = Object.entries(headers).flatMap(([name, value]) =>
        [value].flat().map((line): [string, string] => [name, line]),
      )
      const response = await fetch(url + path, { method, headers: pairs })
      const text = await response.text()
      const body = (text === '' ? {} : JSON.parse(text)) as { error?: string }
      return {
        status: response.status,
        challenge: response.headers.get('www-authenticate'),
        nonce: response.headers.get('dpop-nonce'),
        cache: response.headers.get('cache-control'),
        error: body.error,
      }
    },
  }
}
