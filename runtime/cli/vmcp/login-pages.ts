/**
 * Serves the login pages of `gatehouse up --login`, which run in another thread on a loopback port. Browsers reach
 * these pages at the server's own address, so one tunnel or one forwarded port is enough.
 */
import { type IncomingMessage, request } from 'node:http'
import { GatehouseError, hopByHop, invalidConfig } from '../../../schemas/index.ts'
import type { HostedAuthServer } from '../../authserver/index.ts'
import { type Environment, vmcpEnvironment } from '../../config/index.ts'
import { type Exchange, isLoopbackHost, readBody, type Stage } from '../../net/index.ts'

/** Prefix of the paths of all login pages. */
export const loginPath = '/login/'

/** Larger than any form or passkey response. */
const maxBodyBytes = 65_536
const timeoutMs = 30_000

/** Request headers that the pages read. */
const passed = [
  'accept',
  'authorization',
  'content-type',
  'cookie',
  'origin',
  'sec-fetch-site',
  'user-agent',
] as const

/** Adds the login pages to the authorization server's routes. Throws INVALID_CONFIG for an invalid origin. */
export function withLoginPages(
  authServer: HostedAuthServer | undefined,
  env: Environment,
): HostedAuthServer | undefined {
  const value = env[vmcpEnvironment.loginPages]
  if (value === undefined || !authServer) return authServer
  const origin = URL.canParse(value) ? new URL(value) : undefined
  if (origin?.protocol !== 'http:' || !isLoopbackHost(origin.hostname))
    throw invalidConfig(`${vmcpEnvironment.loginPages}: must be an http URL on a loopback address`)
  const relay = relayTo(origin)
  return {
    ...authServer,
    routes: (path) => (path.startsWith(loginPath) ? relay : authServer.routes(path)),
  }
}

function relayTo({ hostname, port }: URL): Stage<Exchange> {
  return async function relay(exchange) {
    const { req, res, body: unread } = exchange
    if (unread.length === 0) await readBody(exchange, { maxBytes: maxBodyBytes })
    const { body, signal } = exchange
    const headers = Object.fromEntries(
      passed.flatMap((name) => {
        const value = req.headers[name]
        return value === undefined ? [] : [[name, value]]
      }),
    )
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(
        {
          hostname,
          port,
          path: req.url,
          method: req.method,
          headers: { ...headers, 'content-length': body.length },
          signal,
          timeout: timeoutMs,
        },
        resolve,
      )
      sent.once('timeout', () => sent.destroy(new Error('the login pages do not respond')))
      sent.once('error', reject)
      sent.end(body)
    }).catch((cause: unknown) => {
      throw new GatehouseError('AUTH_UNAVAILABLE', { cause })
    })
    const kept = Object.entries(answer.headers).filter(([name]) => !hopByHop.has(name))
    res.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept))
    answer.pipe(res)
    answer.once('error', () => res.destroy())
  }
}
