/** `--stateless`: a target that only accepts POST gets no other methods. */
import t from 'tap'
import { resolveProxyConfig } from '../../../runtime/config/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { json, rpc, startUpstream } from '../../helpers/proxy/rig.ts'

t.test(
  'stateless: GET and DELETE get 405 from the proxy and POST is forwarded; without the flag, all are forwarded',
  async (t) => {
    const target = await startUpstream((_seen, res) => res.end('{}'))
    t.teardown(() => target.close())
    for (const stateless of [true, false]) {
      const config = resolveProxyConfig('demo', { targetUri: target.url, stateless }, {})
      const proxy = await runProxy(config, { log: silentLog, notify() {} })
      t.teardown(() => proxy.close({ graceMs: 0 }))
      await proxy.ready
      for (const method of ['GET', 'DELETE']) {
        const before = target.seen.length
        const response = await fetch(`${proxy.url}/mcp`, { method })
        t.equal(response.status, stateless ? 405 : 200, `${method}, stateless ${stateless}`)
        t.equal(target.seen.length - before, stateless ? 0 : 1, 'requests at the target')
        if (stateless) t.equal(response.headers.get('allow'), 'POST, OPTIONS')
        await response.body?.cancel()
      }
      const posted = await fetch(`${proxy.url}/mcp`, { method: 'POST', headers: json, body: rpc(1) })
      t.equal(posted.status, 200)
      t.same(await posted.json(), {})
    }
  },
)
