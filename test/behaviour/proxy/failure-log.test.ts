/** The proxy's log names the part that failed when it cannot serve a request. */
import t from 'tap'
import { resolveProxyConfig } from '../../../runtime/config/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { keepingLog } from '../../helpers/authserver/authserver.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { json, rpc, startUpstream } from '../../helpers/proxy/rig.ts'

await t.test(
  'a discovery document of another issuer is not reported as an error of the target',
  async (t) => {
    const target = await startUpstream((_seen, res) => res.end('hello'))
    const idp = await startLoopback(() => ({
      body: { issuer: 'https://other.example', jwks_uri: 'https://other.example/jwks' },
    }))
    const recorded = keepingLog()
    const settings = { targetUri: target.url, port: '0', oidcIssuer: idp.url, oidcAudience: 'a' }
    const proxy = await runProxy(resolveProxyConfig('x', settings, {}), {
      log: recorded.log,
      notify: () => {},
    })
    t.teardown(() => Promise.all([proxy.close({ graceMs: 0 }), target.close(), idp.close()]))
    const header = Buffer.from('{"alg":"RS256","kid":"k"}').toString('base64url')
    const response = await fetch(`${proxy.url}/mcp`, {
      method: 'POST',
      headers: { ...json, authorization: `Bearer ${header}.e30.c2ln` },
      body: rpc(1),
    })
    t.equal(response.status, 503)
    t.notMatch(recorded.text(), /the request to the target failed/)
    t.match(recorded.text(), /checking the caller's access token failed/)
    t.match(recorded.text(), /names another issuer/)
    t.match(recorded.text(), /expected issuer http:[^"]*, found https:\/\/other\.example/)
    t.equal(target.seen.length, 0)
  },
)
