/** Responses that could not be compared with the OpenAPI document are reported when `output` is `warn`. */
import t from 'tap'
import { GatehouseError } from '../../../../schemas/index.ts'
import { makeEvents } from '../../../../runtime/observe/index.ts'
import { OutputCheck } from '../../../../runtime/vmcp/backends/openapi/output-check.ts'
import type { Request } from '../../../../runtime/vmcp/backends/connection.ts'
import { localIssuer, makeCaller } from '../../../../runtime/net/index.ts'

const caller = makeCaller({ issuer: localIssuer, subject: 'user', claims: {} })
const request = { sender: { caller }, signal: new AbortController().signal } as unknown as Request

for (const [what, failure, reason] of [
  ['busy workers', new GatehouseError('RATE_LIMITED', { detail: 'too many tasks' }), /too many tasks/],
  ['a check that takes too long', new DOMException('late', 'TimeoutError'), /took longer than 10 s/],
  ['any other failure', new Error('secret detail'), /^the check failed$/],
] as const) {
  t.test(`warn: ${what}: the response reaches the client, and the reason is reported`, async (t) => {
    const events = makeEvents()
    const reported = Promise.withResolvers<unknown>()
    events.listen(({ type, fields }) => reported.resolve({ type, fields }))
    let checks = 0
    const checkOutput = () => {
      checks++
      return Promise.reject(failure)
    }
    const check = new OutputCheck({ name: 'pets', settings: {}, checkOutput, events })
    const run = () => check.check({ type: 'object' }, Buffer.from('{}'), { tool: 'getPet', request })
    t.strictSame(await run(), [])
    t.match(await reported.promise, {
      type: 'openapi_response_unchecked',
      fields: { backend: 'pets', tool: 'getPet', reason, err: failure },
    })
    t.match(events.recent(), [{ type: 'openapi_response_unchecked', backend: 'pets', reason: 'getPet' }])
    await new Promise((done) => setImmediate(done))
    t.strictSame(await run(), [], 'the next response is checked again')
    t.equal(checks, 2)
    const enforced = new OutputCheck({ name: 'pets', settings: { output: 'enforce' }, checkOutput, events })
    await t.rejects(
      enforced.check({}, Buffer.from('{}'), { tool: 'getPet', request }),
      failure,
      'enforce: a check that cannot run fails the call',
    )
  })
}
