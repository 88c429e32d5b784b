/**
 * Issuers at private addresses: rejected unless the operator allows them, and each switch only applies to its own
 * calls.
 */
import { lookup } from 'node:dns/promises'
import { createServer } from 'node:http'
import { hostname } from 'node:os'
import t from 'tap'
import { makeAuthenticator } from '../../runtime/incoming/index.ts'
import type { OidcConfig } from '../../runtime/incoming/config.ts'
import { isLoopbackHost } from '../../runtime/net/index.ts'
import { proves } from '../helpers/proves.ts'

/** A name of this machine other than localhost, so that the operator's switch decides. */
const name = hostname()
const resolves = await lookup(name).then(
  () => !isLoopbackHost(name),
  () => false,
)

const jwt = `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.e30.c2ln`

await t.test('private addresses: literals are never dialed', async (t) => {
  for (const host of ['10.1.2.3', '169.254.169.254', '[fd00::1]', '2130706433', '0x7f.1']) {
    const config: OidcConfig = { jwksUrl: `https://${host}/k`, audience: 'me' }
    const trusted = isLoopbackHost(new URL(`https://${host}`).hostname)
    if (trusted) continue
    const authenticator = makeAuthenticator({ type: 'oidc', oidc: config })
    const failure: unknown = await Promise.resolve(authenticator.authenticate(`Bearer ${jwt}`)).catch(
      (error: unknown) => error,
    )
    t.match(failure, { code: 'AUTH_UNAVAILABLE', cause: { kind: 'protocol' } }, host)
    await authenticator.close()
  }
})

await t.test(
  'private addresses: each switch allows only its own calls',
  { skip: !resolves && 'no other name' },
  async (t) => {
    proves(
      '3.config.incomingAuth.oidc.jwksAllowPrivateIp',
      '3.config.incomingAuth.oidc.protectedResourceAllowPrivateIp',
      '3.auth.incoming.3.private',
    )
    const server = createServer((req, res) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(req.url === '/k' ? '{"keys":[]}' : '{"active":true,"sub":"a","aud":"me"}')
    })
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
    t.teardown(() => server.close())
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const base = `http://${name}:${port}`
    const loopback = `http://127.0.0.1:${port}/k`

    async function outcome(token: string, switches: Partial<OidcConfig>): Promise<unknown> {
      const authenticator = makeAuthenticator({
        type: 'oidc',
        oidc: {
          jwksUrl: `${base}/k`,
          introspectionUrl: `${base}/i`,
          audience: 'me',
          insecureAllowHttp: true,
          ...switches,
        },
      })
      try {
        return (await authenticator.authenticate(`Bearer ${token}`)).subject
      } catch (error) {
        return error instanceof Error && 'code' in error ? error.code : error
      } finally {
        await authenticator.close()
      }
    }
    t.equal(await outcome(jwt, {}), 'AUTH_UNAVAILABLE')
    t.equal(await outcome(jwt, { protectedResourceAllowPrivateIp: true }), 'AUTH_UNAVAILABLE')
    t.equal(await outcome(jwt, { jwksAllowPrivateIp: true }), 'INVALID_TOKEN', 'the keys were read')
    t.equal(await outcome('opaque', { jwksAllowPrivateIp: true }), 'AUTH_UNAVAILABLE')
    t.equal(await outcome('opaque', { protectedResourceAllowPrivateIp: true }), 'a')
    const onLoopback = { jwksUrl: loopback, jwksAllowPrivateIp: true }
    t.equal(await outcome(jwt, onLoopback), 'INVALID_TOKEN', 'a server on this machine: its keys were read')
  },
)
