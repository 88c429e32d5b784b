/** A structured result that a mutating webhook changed must still match the tool's output schema, in both eras. */
import t, { type Test } from 'tap'
import { patchedResponse } from '../../../runtime/policy/webhooks/patch.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { eras } from '../../helpers/decisions/decision-rig.ts'
import { bareNames } from '../../helpers/vmcp/vmcp.ts'
import { patch, startWebhook } from '../../helpers/vmcp/webhook.ts'
import { hook, startWebhookRig } from '../../helpers/vmcp/webhook-rig.ts'

const outputSchema = {
  type: 'object',
  properties: { ssn: { type: 'string' }, n: { type: 'number', maximum: 9 } },
  required: ['ssn'],
  additionalProperties: false,
}
const told = (structuredContent: unknown, more: object = {}) =>
  JSON.stringify({ content: [{ type: 'text', text: 'told' }], structuredContent, ...more })
const at = (path: string) => `/mcp_response/result/${path}`
const unavailable = { code: -32603, message: /a required webhook returned no valid response/ }

/** `look` is a tool with an output schema; `free` has none. */
async function rig(t: Test, more: Record<string, unknown> = {}, result = told({ ssn: '1-2', n: 1 })) {
  const webhook = await startWebhook()
  const backend = await startRawBackend({
    tools: () => [
      JSON.stringify({ name: 'look', inputSchema: { type: 'object' }, outputSchema }),
      JSON.stringify({ name: 'free', inputSchema: { type: 'object' } }),
    ],
    responses: { 'tools/call': () => result },
  })
  t.teardown(() => Promise.all([webhook.close(), backend.close()]))
  const server = await startWebhookRig(
    t,
    { mutating: [hook('mask', webhook, { phase: 'response', timeout: '30s', ...more })] },
    {
      aggregation: bareNames('raw'),
      backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    },
  )
  return { webhook, server }
}

const fits: readonly (readonly [string, readonly Record<string, unknown>[], unknown])[] = [
  [
    'another text',
    [{ op: 'replace', path: at('structuredContent/ssn'), value: '***' }],
    { ssn: '***', n: 1 },
  ],
  ['less', [{ op: 'remove', path: at('structuredContent/n') }], { ssn: '1-2' }],
  [
    'an error has no structure to have',
    [
      { op: 'remove', path: at('structuredContent') },
      { op: 'add', path: at('isError'), value: true },
    ],
    undefined,
  ],
]
const unfit: readonly (readonly [string, Record<string, unknown>])[] = [
  ['another type', { op: 'replace', path: at('structuredContent/ssn'), value: 5 }],
  ['beyond a bound', { op: 'replace', path: at('structuredContent/n'), value: 10 }],
  ['a member that must be', { op: 'remove', path: at('structuredContent/ssn') }],
  ['a member more', { op: 'add', path: at('structuredContent/more'), value: 1 }],
  ['no structure at all', { op: 'remove', path: at('structuredContent') }],
  ['no object', { op: 'replace', path: at('structuredContent'), value: 'text' }],
]

for (const era of eras) {
  t.test(`${era} era: a structured result that matches is forwarded`, async (t) => {
    const { webhook, server } = await rig(t)
    const ask = await server.as(era, 'alice')
    for (const [label, operations, expected] of fits) {
      webhook.reply = () => patch(...operations)
      const { response } = await ask('tools/call', { name: 'look' })
      t.ok(response?.result, label)
      t.same(response?.result?.['structuredContent'], expected, label)
    }
  })

  t.test(`${era} era: a mismatch is a failure of the webhook, and reported as such`, async (t) => {
    const { webhook, server } = await rig(t)
    const ask = await server.as(era, 'alice')
    for (const [label, operation] of unfit) {
      webhook.reply = () => patch(operation)
      t.match((await ask('tools/call', { name: 'look' })).response?.error, unavailable, label)
      t.ok(
        (await ask('tools/call', { name: 'free' })).response?.result,
        `${label}: of a tool without a schema`,
      )
    }
    const failed = (await server.audited(2 * unfit.length)).filter(({ webhooks }) =>
      webhooks?.some(({ outcome }) => outcome === 'patch'),
    )
    t.equal(failed.length, unfit.length)
    t.match(failed[0]?.webhooks, [{ name: 'mask', outcome: 'patch' }])
    t.match(await server.metrics(), /gatehouse_webhook_calls[^\n]*outcome="patch"/)
  })

  t.test(`${era} era: with ignore, and in mode audit, the client gets the backend's result`, async (t) => {
    for (const more of [{ failurePolicy: 'ignore' }, { mode: 'audit' }]) {
      const { webhook, server } = await rig(t, more)
      const ask = await server.as(era, 'alice')
      webhook.reply = () => patch({ op: 'replace', path: at('structuredContent/ssn'), value: 5 })
      const { response } = await ask('tools/call', { name: 'look' })
      t.same(response?.result?.['structuredContent'], { ssn: '1-2', n: 1 })
      t.match((await server.audited(1))[0]?.webhooks, [{ outcome: 'patch', enforced: false }])
    }
  })

  t.test(`${era} era: mismatches in the backend's own result are not blamed on the webhook`, async (t) => {
    const { webhook, server } = await rig(t, {}, told({ ssn: 5 }))
    const ask = await server.as(era, 'alice')
    webhook.reply = () => patch({ op: 'replace', path: at('content/0/text'), value: 'masked' })
    const { response } = await ask('tools/call', { name: 'look' })
    t.match(response?.result, { content: [{ text: 'masked' }], structuredContent: { ssn: 5 } })
  })
}

t.test('the log names the mismatch and contains no values', async (t) => {
  const body = Buffer.from('{"structuredContent":{"ssn":"1-2"}}')
  const document = Buffer.from(`{"mcp_response":{"jsonrpc":"2.0","result":${body.toString()}}}`)
  const operation = { op: 'replace', path: at('structuredContent/ssn'), value: 'secret' }
  const seen: (string | undefined)[] = []
  const misfits = async (structured: Buffer | undefined) => {
    seen.push(structured?.toString())
    return ['ssn must be a number\u202e', 'another one']
  }
  await t.rejects(patchedResponse({ kind: 'result', body }, document, [operation], misfits), {
    reason: 'patch',
    message:
      "the patched structuredContent does not match the tool's outputSchema: ssn must be a number\\u{202e}",
  })
  t.same(seen, ['{"ssn":"secret"}'])
})
