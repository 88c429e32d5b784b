/** More requests than the proxy can handle. */
import t from 'tap'
import { makeLog } from '../../../runtime/observe/index.ts'
import { crowd, crowdedLoad, pipelined } from '../../helpers/mcp/pipelined.ts'
import { rpc, startRig, startUpstream } from '../../helpers/proxy/rig.ts'

t.test(
  'overload: some requests are forwarded, the other requests get 503 with Retry-After, and probes succeed',
  async (t) => {
    const upstream = await startUpstream((_seen, res) => {
      const body = '{"jsonrpc":"2.0","id":1,"result":{}}'
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
    })
    const lines: string[] = []
    const log = makeLog({ level: 'info', destination: { write: (line) => void lines.push(line) } })
    const rig = await startRig(upstream.url, { load: crowdedLoad, log })
    t.teardown(() => Promise.all([rig.close(), upstream.close()]))

    const asked = pipelined(
      `${rig.url}/mcp`,
      Array.from({ length: crowd }, (_, i) => ({ body: rpc(i) })),
    )
    const probes = await Promise.all(['/health', '/readyz'].map((path) => fetch(rig.url + path)))
    t.same(
      probes.map(({ status }) => status),
      [200, 200],
    )
    const responses = await asked
    const refused = responses.filter(({ status }) => status === 503)
    const forwarded = responses.filter(({ status }) => status === 200)
    t.equal(forwarded.length + refused.length, crowd)
    t.ok(refused.length > 0)
    t.ok(forwarded.length > 0)
    t.equal(upstream.seen.length, forwarded.length, 'rejected requests do not reach the target')
    for (const { head } of refused) if (!/^retry-after: [123]$/im.test(head)) t.fail(head)

    const told = lines.filter((line) => line.includes('overloaded: rejecting requests'))
    t.equal(told.length, 1, 'the log contains it once')
    t.match(told[0], /"hint":/)
    t.equal(lines.filter((line) => line.includes('"status":503')).length, 0, 'and not with each request')
  },
)
