/** The last link removes members of `_meta` that only Gatehouse may write, with any links that observe the request. */
import t from 'tap'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { send } from '../../../runtime/vmcp/call/send.ts'
import type { Core } from '../../../runtime/vmcp/call/core.ts'
import type { Delivery } from '../../../runtime/vmcp/model/delivery.ts'
import type { Operation } from '../../../runtime/vmcp/model/operation.ts'

/** Sends a call to a backend that returns `result`. Returns the result that the links receive. */
async function resultOfCall(result: string, delivery?: Delivery): Promise<string> {
  const backend = {
    name: 'raw',
    settings: { name: 'raw', timeoutMs: 1_000 },
    isAvailable: true,
    call: async () => ({ kind: 'result', result: Buffer.from(result) }),
  }
  const parts = { members: new Map([['raw', { backend }]]), leftOut: [], onlyBackend: 'raw', links: {} }
  const outcome = await send({ parts } as unknown as Core)({
    method: 'tools/call',
    params: new JsonObject(Buffer.from('{"name":"echo"}')),
    client: { era: 'session', headers: {}, abilities: { raw: Buffer.from('{}') } },
    context: { signal: new AbortController().signal },
    target: { entry: { backend: 'raw', original: 'echo' }, changes: {}, delivery },
  } as unknown as Operation)
  return outcome.kind === 'result' ? outcome.result.toString() : outcome.kind
}

const forged = '{"content":[],"_meta":{"own":1e2,"gatehouse.dev/quota":[],"gatehouse.dev/cost":7}}'

t.test('reserved members are removed without a link that observes the delivery', async (t) => {
  t.equal(await resultOfCall(forged), '{"content":[],"_meta":{"own":1e2}}')
})

t.test(
  'a link that observes the delivery receives the reported cost, not the reserved members',
  async (t) => {
    const delivery: Delivery = { sent: false }
    t.equal(await resultOfCall(forged, delivery), '{"content":[],"_meta":{"own":1e2}}')
    t.equal(delivery.reportedCost?.toString(), '7')
  },
)

t.test('a result without a reported cost leaves the cost undefined', async (t) => {
  const delivery: Delivery = { sent: false }
  const result = '{"content":[{"type":"text","text":"gatehouse.dev/cost"}],"gatehouse.dev/cost":7}'
  t.equal(await resultOfCall(result, delivery), result)
  t.equal(delivery.reportedCost, undefined)
})
