/** `/readyz` reports whether the proxy can serve now, and the reason if not. `/health` only reports that it runs. */
import { createServer } from 'node:http'
import t, { type Test as TapTest } from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import { parseTarget } from '../../../runtime/config/proxy/target.ts'
import { makeDispatcher } from '../../../runtime/net/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import { makeReadiness } from '../../../runtime/proxy/server/readiness.ts'
import { freePort } from '../../helpers/gatehouse.ts'
import { json, rpc, startRig, startUpstream } from '../../helpers/proxy/rig.ts'

async function readyz(url: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}/readyz`)
  t.equal(response.headers.get('cache-control'), 'no-store')
  return { status: response.status, body: await response.json() }
}

/** A server on a given port that answers everything. */
async function serverOn(t: TapTest, port: number): Promise<void> {
  const server = createServer((_req, res) => res.end('{}'))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
}

await t.test('readiness: a working proxy is ready, and paths below go to the target', async (t) => {
  const target = await startUpstream((seen, res) => res.end(seen.url))
  t.teardown(() => target.close())
  const lines: string[] = []
  const log = makeLog({ destination: { write: (line: string) => void lines.push(line) } })
  const rig = await startRig(target.url, { log })
  t.teardown(() => rig.close())
  t.same(await readyz(rig.url), { status: 200, body: { status: 'ready' } })
  t.equal((await fetch(`${rig.url}/readyz`, { method: 'HEAD' })).status, 200)
  t.equal((await fetch(`${rig.url}/readyz`, { method: 'POST' })).status, 405)
  t.equal(await (await fetch(`${rig.url}/readyz/x`)).text(), '/readyz/x')
  t.equal(target.seen.length, 1, 'the target gets no request')
  const logged = lines.filter((line) => line.includes('"message":"request"'))
  t.match(logged.join(''), /"status":405/)
  t.equal(logged.filter((line) => line.includes('"path":"/readyz","status":200')).length, 0)
})

await t.test('readiness: not before the login is complete, with the reason', async (t) => {
  const target = await startUpstream((_seen, res) => res.end('{}'))
  t.teardown(() => target.close())
  let token: string | undefined
  const login = {
    token() {
      if (token === undefined) {
        throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the login to the target is not complete' })
      }
      return { value: token }
    },
  }
  const rig = await startRig(target.url, { login })
  t.teardown(() => rig.close())
  t.same(await readyz(rig.url), {
    status: 503,
    body: { status: 'not_ready', reason: 'the login to the target is not complete' },
  })
  t.equal((await fetch(`${rig.url}/health`)).status, 200, 'the process is still alive')
  token = 'good'
  t.equal((await readyz(rig.url)).status, 200)
})

await t.test('readiness: losing the target makes the proxy unready until the target is back', async (t) => {
  const port = await freePort()
  const rig = await startRig(`http://127.0.0.1:${port}`)
  t.teardown(() => rig.close())
  const call = (): Promise<Response> =>
    fetch(`${rig.url}/mcp`, { method: 'POST', headers: json, body: rpc(1) })
  for (let n = 0; n < 4; n++) t.equal((await call()).status, 502)
  t.equal((await readyz(rig.url)).status, 200, 'a few failures do not make it unready')
  t.equal((await call()).status, 502)
  t.same(await readyz(rig.url), {
    status: 503,
    body: { status: 'not_ready', reason: 'the target does not respond' },
  })
  await serverOn(t, port)
  t.equal((await call()).status, 200)
  t.equal((await readyz(rig.url)).status, 200)
})

await t.test('readiness: without traffic, the target is checked at intervals', async (t) => {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const dispatcher = makeDispatcher({ origin })
  t.teardown(() => dispatcher.destroy())
  let now = 0
  const readiness = makeReadiness({ target: parseTarget(origin), dispatcher, now: () => now })
  for (let n = 0; n < 5; n++) readiness.unreachable()
  t.equal(await readiness.notReady(), 'the target does not respond')
  await serverOn(t, port)
  t.equal(await readiness.notReady(), 'the target does not respond', 'not probed again at once')
  now = 5_000
  t.equal(await readiness.notReady(), undefined)
  readiness.end()
  t.equal(await readiness.notReady(), 'the proxy is shutting down')
})
