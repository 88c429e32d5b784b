/** Mutating webhooks, in both eras: arguments, results and errors, in order, byte for byte, within bounds. */
import t, { type Test } from 'tap'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { post, stateless } from '../../helpers/mcp/wire.ts'
import { type Ask, eras } from '../../helpers/decisions/decision-rig.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'
import { deny, patch, startWebhook, type TestWebhook } from '../../helpers/vmcp/webhook.ts'
import { hook, startWebhookRig } from '../../helpers/vmcp/webhook-rig.ts'

const args = '/mcp_request/params/arguments'
const echo = (ask: Ask, text: unknown = 'hello') => ask('tools/call', { name: 'echo', arguments: { text } })
const unavailable = 'a required webhook returned no valid response: try again later'

async function started(t: Test, reply?: TestWebhook['reply']): Promise<TestWebhook> {
  const webhook = await startWebhook(reply)
  t.teardown(() => webhook.close())
  return webhook
}

for (const era of eras) {
  t.test(
    `${era} era: each webhook sees the earlier changes, and validating ones see the final call`,
    async (t) => {
      const first = await started(t, () => patch({ op: 'replace', path: `${args}/text`, value: 'one' }))
      const second = await started(t, ({ mcp_request: { params } }) =>
        patch({ op: 'add', path: `${args}/more`, value: `${String(params.arguments?.['text'])} two` }),
      )
      const last = await started(t)
      const rig = await startWebhookRig(t, {
        mutating: [hook('first', first), hook('second', second)],
        validating: [hook('last', last)],
      })
      const ask = await rig.as(era, 'alice')
      t.match((await echo(ask)).text, /one.*one two/)
      const made = { text: 'one', more: 'one two' }
      t.same(last.asked[0]?.request.mcp_request.params.arguments, made)
      t.match((await rig.audited(1))[0]?.webhooks, [
        { name: 'first', outcome: 'mutated' },
        { name: 'second', outcome: 'mutated' },
        { name: 'last', outcome: 'allowed' },
      ])
      second.reply = () => deny('no')
      t.match((await echo(ask)).response?.error, { code: 403 })
      t.equal(last.asked.length, 1, 'a denial of a mutating webhook ends the call, too')
    },
  )

  t.test(`${era} era: results are changed or withheld`, async (t) => {
    const webhook = await started(t, () =>
      patch({ op: 'replace', path: '/mcp_response/result/content/0/text', value: 'masked' }),
    )
    const rig = await startWebhookRig(t, { mutating: [hook('mask', webhook, { phase: 'response' })] })
    const ask = await rig.as(era, 'alice')
    t.match((await echo(ask)).response?.result?.['content'], [{ type: 'text', text: 'masked' }])
    t.match(webhook.asked[0]?.request, {
      mcp_request: { method: 'tools/call', params: { name: 'echo' } },
      mcp_response: { jsonrpc: '2.0', result: { content: [{ type: 'text' }] } },
      context: { gatehouse: { phase: 'response' } },
    })
    webhook.reply = () => deny('contains secrets')
    t.match((await echo(ask)).response?.error, {
      code: 403,
      message: 'result withheld by a webhook: contains secrets',
    })
  })

  t.test(`${era} era: a patch that touches forbidden members is rejected as a whole`, async (t) => {
    const webhook = await started(t)
    const rig = await startWebhookRig(t, { mutating: [hook('evil', webhook)] })
    const ask = await rig.as(era, 'alice')
    const other = { name: 'test_simple_text', arguments: {} }
    const wrong: Record<string, readonly Record<string, unknown>[]> = {
      rename: [{ op: 'replace', path: '/mcp_request/params/name', value: 'test_simple_text' }],
      'rename by the whole params': [{ op: 'replace', path: '/mcp_request/params', value: other }],
      'rename by the whole request': [
        {
          op: 'replace',
          path: '/mcp_request',
          value: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: other },
        },
      ],
      'rename by the document': [{ op: 'replace', path: '', value: { mcp_request: { params: other } } }],
      'rename by a move': [{ op: 'move', from: `${args}/text`, path: '/mcp_request/params/name' }],
      'rename by a copy': [{ op: 'copy', from: `${args}/text`, path: '/mcp_request/params/name' }],
      'rename in two steps': [
        { op: 'remove', path: '/mcp_request/params/name' },
        { op: 'add', path: '/mcp_request/params/name', value: 'test_simple_text' },
      ],
      'no name': [{ op: 'remove', path: '/mcp_request/params/name' }],
      method: [{ op: 'replace', path: '/mcp_request/method', value: 'resources/read' }],
      id: [{ op: 'replace', path: '/mcp_request/id', value: 77 }],
      version: [{ op: 'replace', path: '/mcp_request/jsonrpc', value: '1.0' }],
      'another member': [{ op: 'add', path: '/mcp_request/extra', value: 1 }],
      'another member of params': [{ op: 'add', path: '/mcp_request/params/requestState', value: 'x' }],
      outside: [{ op: 'add', path: '/context', value: {} }],
      'the protocol in _meta': [
        {
          op: 'add',
          path: '/mcp_request/params/_meta',
          value: { 'io.modelcontextprotocol/protocolVersion': '1' },
        },
      ],
      'arguments as text': [{ op: 'replace', path: args, value: 'x' }],
      'arguments as a long number': [{ op: 'replace', path: args, value: 1 }],
      'a failed test': [{ op: 'test', path: `${args}/text`, value: 'other' }],
      'a path into nothing': [{ op: 'replace', path: `${args}/a/b/c`, value: 1 }],
      'an unknown operation': [{ op: 'merge', path: args, value: {} }],
      'no operation': [{ path: args }],
      'a prototype': [{ op: 'add', path: `${args}/__proto__`, value: { name: 'x' } }],
      'from a prototype': [{ op: 'copy', from: `${args}/constructor`, path: `${args}/x` }],
      'too many': Array.from({ length: 501 }, () => ({ op: 'test', path: '/mcp_request/id', value: 1 })),
      'copies of copies': Array.from({ length: 64 }, (_, i) => ({
        op: 'copy',
        from: args,
        path: `${args}/c${i}`,
      })),
    }
    let failures = 0
    for (const [name, operations] of Object.entries(wrong)) {
      webhook.reply = () => patch(...operations)
      const { response, text } = await echo(ask, 'test_simple_text')
      t.match(response?.error, { code: -32603, message: unavailable }, name)
      t.notMatch(text, webhook.url)
      failures++
    }
    webhook.reply = () => ({ allowed: true, patch_type: 'merge', patch: [{ op: 'remove', path: args }] })
    t.match((await echo(ask)).response?.error, { message: unavailable }, 'another kind of patch')
    webhook.reply = () => ({ allowed: true, patch_type: 'json_patch', patch: 'x' })
    t.match((await echo(ask)).response?.error, { message: unavailable }, 'no list')
    failures += 2
    t.match(await rig.metrics(), new RegExp(`webhook_calls_total\\{[^}]*outcome="patch"[^}]*\\} ${failures}`))
    webhook.reply = () => patch()
    t.match((await echo(ask)).text, 'hello', 'an empty patch changes nothing')
    webhook.reply = () => patch({ op: 'add', path: '/mcp_request/params/_meta', value: {} })
    if (era === 'session') t.match((await echo(ask)).text, 'hello', 'other members of _meta may change')
    webhook.reply = () => patch({ op: 'remove', path: args })
    t.notMatch((await echo(ask)).text, 'hello', 'arguments may be removed')
  })

  t.test(`${era} era: a patched result stays a result`, async (t) => {
    const webhook = await started(t)
    const rig = await startWebhookRig(t, { mutating: [hook('evil', webhook, { phase: 'response' })] })
    const ask = await rig.as(era, 'alice')
    const result = '/mcp_response/result'
    for (const operation of [
      { op: 'add', path: `${result}/resultType`, value: 'input_required' },
      { op: 'add', path: `${result}/requestState`, value: 'x' },
      { op: 'add', path: '/mcp_response/error', value: { code: 1, message: 'x' } },
      { op: 'replace', path: '/mcp_response/id', value: 9 },
      { op: 'replace', path: result, value: 'x' },
      { op: 'replace', path: `${result}/content`, value: 'x' },
      { op: 'replace', path: '/mcp_request/params/name', value: 'x' },
    ]) {
      webhook.reply = () => patch(operation)
      t.match((await echo(ask)).response?.error, { code: -32603, message: unavailable }, operation.path)
    }
  })
}

t.test('members that a patch keeps or moves keep their digits', async (t) => {
  const webhook = await started(t, () =>
    patch(
      { op: 'add', path: `${args}/added`, value: 1 },
      { op: 'move', from: `${args}/big`, path: `${args}/moved` },
      { op: 'copy', from: `${args}/list/0`, path: `${args}/copied` },
    ),
  )
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { aggregation: bareNames('raw'), webhooks: { mutating: [hook('m', webhook)] } },
  )
  t.teardown(async () => void (await Promise.all([vmcp.close(), backend.close()])))
  const meta =
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}'
  const call = (given: string) =>
    post(
      vmcp.url,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${given},${meta}}}`,
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'echo' },
    )
  await call('{"big":12345678901234567890,"list":[98765432109876543210,1]}')
  const sent = backend.requests.find(({ method }) => method === 'tools/call')?.body
  t.match(
    sent,
    '{"list":[98765432109876543210,1],"added":1,"moved":12345678901234567890,"copied":98765432109876543210}',
  )
  t.match(
    webhook.asked[0]?.text,
    '{"big":12345678901234567890,"list":[98765432109876543210,1]}',
    'as it was sent',
  )

  for (const given of ['{"a":1,"a":2}', '{"a":{"b":1,"\\u0062":2}}'])
    t.match((await call(given)).response?.error, { code: -32602 }, 'the JSON is ambiguous')
  t.equal(webhook.asked.length, 1)
})

t.test(
  'mirrored headers of the client must match its arguments, and those to the backend match the changed ones',
  async (t) => {
    const webhook = await started(t, () => patch({ op: 'replace', path: `${args}/region`, value: 'us' }))
    const rig = await startWebhookRig(
      t,
      { mutating: [hook('m', webhook)] },
      { incomingAuth: { type: 'anonymous' } },
    )
    const call = (header: string) =>
      stateless(
        rig.vmcp.url,
        'tools/call',
        { name: 'test_mirrored_header', arguments: { region: 'eu' } },
        { headers: { 'mcp-param-region': header } },
      )
    t.match((await call('eu')).response?.result, { content: [{ text: 'ok' }] })
    const seen = rig.fixture.state.requests.filter(({ headers }) => headers['mcp-param-region'] !== undefined)
    t.same(
      seen.map(({ headers }) => headers['mcp-param-region']),
      ['us'],
    )
    t.match((await call('us')).response?.error, { code: -32020 }, 'a client that contradicts itself')
  },
)

t.test('a webhook can change the error of a backend, but not its code', async (t) => {
  const webhook = await started(t, () =>
    patch({ op: 'replace', path: '/mcp_response/error/message', value: 'masked' }),
  )
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ id, res }) => {
        const error = '{"code":-32050,"message":"password is hunter2","data":{"a":1}}'
        res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${id},"error":${error}}`)
        return undefined
      },
    },
  })
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    {
      aggregation: bareNames('raw'),
      webhooks: { mutating: [hook('m', webhook, { phase: 'response' })] },
    },
  )
  t.teardown(async () => void (await Promise.all([vmcp.close(), backend.close()])))
  const call = () => stateless(vmcp.url, 'tools/call', { name: 'echo', arguments: {} })
  t.match((await call()).response?.error, { code: -32050, message: 'masked', data: { a: 1 } })
  webhook.reply = () => patch({ op: 'replace', path: '/mcp_response/error/code', value: 1 })
  t.match((await call()).response?.error, { message: unavailable })
})
