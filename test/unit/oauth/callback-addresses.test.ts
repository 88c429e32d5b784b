/** The callback listener of a login binds every address that the browser may use for the redirect URI. */
import t from 'tap'
import { silentLog } from '../../../runtime/net/index.ts'
import { openCallback } from '../../../runtime/oauth/index.ts'
import { isFree, lacksIpv6, takePort } from '../../helpers/proxy/taken-port.ts'

const skip = lacksIpv6

const statusAt = async (origin: string): Promise<number> => (await fetch(`${origin}/callback?state=x`)).status

t.test('callback: localhost is bound on both addresses', { skip }, async (t) => {
  const callback = await openCallback(0, silentLog)
  t.teardown(() => callback.close())
  for (const host of ['127.0.0.1', '[::1]', 'localhost']) {
    t.equal(await statusAt(`http://${host}:${callback.port}`), 400, host)
  }
})

t.test('callback: a port that another program uses on either address is rejected', { skip }, async (t) => {
  for (const [taken, other] of [
    ['::1', '127.0.0.1'],
    ['127.0.0.1', '::1'],
  ] as const) {
    const port = await takePort(t, taken)
    await t.rejects(openCallback(port, silentLog), { code: 'EADDRINUSE', address: taken, port })
    t.ok(await isFree(other, port), 'the other address is released')
  }
})

t.test('callback: only the address of the redirect URI is bound', { skip }, async (t) => {
  for (const [host, taken] of [
    ['127.0.0.1', '::1'],
    ['[::1]', '127.0.0.1'],
  ] as const) {
    const port = await takePort(t, taken)
    const callback = await openCallback(port, silentLog, { host })
    t.teardown(() => callback.close())
    t.equal(callback.redirectUri, `http://${host}:${port}/callback`)
    t.equal(await statusAt(`http://${host}:${port}`), 400, host)
  }
})
