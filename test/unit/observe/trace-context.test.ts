/** Reading and writing W3C Trace Context. Source: W3C Trace Context, sections 3.2 and 3.3. */
import t from 'tap'
import { readTraceContext, writeTraceContext } from '../../../runtime/observe/telemetry/propagation.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

t.test('trace context: a valid parent is read and written back', async (t) => {
  for (const flags of ['00', '01']) {
    const traceparent = `00-${traceId}-${spanId}-${flags}`
    const context = readTraceContext({ traceparent, tracestate: 'a=1, b@x=2' })
    if (!context) throw new Error('not read')
    t.same(writeTraceContext(context), { traceparent, tracestate: 'a=1,b@x=2' })
    t.equal(context.isRemote, true)
  }
})

t.test('trace context: a later version may have more fields, version 00 may not', async (t) => {
  t.ok(readTraceContext({ traceparent: `cc-${traceId}-${spanId}-01-more` }))
  t.equal(readTraceContext({ traceparent: `00-${traceId}-${spanId}-01-more` }), undefined)
})

t.test('trace context: a malformed parent is ignored', async (t) => {
  for (const traceparent of [
    undefined,
    '',
    'x',
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01\nevil: 1`,
  ]) {
    t.equal(readTraceContext({ traceparent }), undefined, String(traceparent))
  }
})

t.test('trace context: a malformed or overlong state is dropped, and the parent is kept', async (t) => {
  const traceparent = `00-${traceId}-${spanId}-01`
  for (const tracestate of ['Bearer abc', 'a', 'a=1,,=2', `a=${'x'.repeat(600)}`, 'a=b c', 'a=1\r\nx: y']) {
    const context = readTraceContext({ traceparent, tracestate })
    t.ok(context, tracestate.slice(0, 10))
    t.equal(context?.traceState, undefined)
  }
})
