/**
 * Webhooks and the other checks of a call: policies, pins and matching see the actual call, and calls from tool search,
 * scripts and workflows are checked like plain calls.
 */
import t, { type Test } from 'tap'
import { eras } from '../../helpers/decisions/decision-rig.ts'
import { changed, approved, lockOf, pinning, startChanging } from '../../helpers/vmcp/pinning.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'
import { allow, answer, deny, patch, startWebhook, type TestWebhook } from '../../helpers/vmcp/webhook.ts'
import { hook, startWebhookRig } from '../../helpers/vmcp/webhook-rig.ts'

const args = '/mcp_request/params/arguments'

async function started(t: Test, reply?: TestWebhook['reply']): Promise<TestWebhook> {
  const webhook = await startWebhook(reply)
  t.teardown(() => webhook.close())
  return webhook
}

/** Names and arguments that a webhook received. */
const seen = (webhook: TestWebhook) =>
  webhook.asked.map(({ request: { mcp_request: asked } }) => asked.params['name'])

for (const era of eras) {
  t.test(`${era} era: policies evaluate the arguments from the webhook`, async (t) => {
    const webhook = await started(t, ({ mcp_request: { params } }) =>
      params.arguments?.['path'] === undefined
        ? allow
        : patch({
            op: 'replace',
            path: `${args}/path`,
            value: JSON.stringify(params.arguments['path']).slice(1, -1).toLowerCase(),
          }),
    )
    const policies = [
      'permit(principal, action == Action::"call_tool", resource == Tool::"echo") when { context has arg_path && context.arg_path like "/tmp/*" };',
    ]
    const rig = await startWebhookRig(
      t,
      { mutating: [hook('lower', webhook)] },
      { authz: { type: 'cedar', policies } },
    )
    const ask = await rig.as(era, 'alice')
    const echo = (path: string) => ask('tools/call', { name: 'echo', arguments: { path } })
    t.match((await echo('/TMP/a')).text, '/tmp/a')
    webhook.reply = () => patch({ op: 'replace', path: `${args}/path`, value: '/etc/passwd' })
    const { response } = await echo('/tmp/a')
    t.match(response?.error, { code: 403, message: 'call denied by authorization policy' })
  })

  t.test(`${era} era: calls from tool search, scripts and workflows pass through the webhooks`, async (t) => {
    const webhook = await started(t)
    const workflow = {
      name: 'flow',
      description: 'Echoes',
      parameters: { type: 'object', properties: { text: { type: 'string' } } },
      steps: [{ id: 'one', type: 'tool', tool: 'echo', arguments: { text: '{{.params.text}}' } }],
    }
    const rig = await startWebhookRig(
      t,
      { mutating: [hook('all', webhook)] },
      { optimizer: {}, codeMode: { enabled: true }, compositeTools: [workflow] },
    )
    const ask = await rig.as(era, 'alice')
    const call = (name: string, parameters: Record<string, unknown>) =>
      ask('tools/call', { name: 'call_tool', arguments: { tool_name: name, parameters } })
    const asked = async (work: () => Promise<unknown>): Promise<unknown[]> => {
      const before = webhook.asked.length
      await work()
      return seen(webhook).slice(before)
    }
    t.same(await asked(() => call('echo', { text: 'a' })), ['echo'], 'the tool that call_tool calls')
    t.same(
      await asked(() => ask('tools/call', { name: 'find_tool', arguments: { tool_description: 'echo' } })),
      ['find_tool'],
    )
    t.same(await asked(() => call('flow', { text: 'a' })), ['flow', 'echo'], 'a workflow and its step')
    const script = { script: 'return call_tool("echo", {"text": "a"})' }
    const byScript = await asked(() => call('execute_tool_script', script))
    t.equal(byScript[0], 'execute_tool_script')

    webhook.reply = ({ mcp_request: { params } }) =>
      params['name'] === 'echo' ? patch({ op: 'replace', path: `${args}/text`, value: 'changed' }) : allow
    t.match((await call('echo', { text: 'a' })).text, 'changed')
    t.match((await call('flow', { text: 'a' })).text, 'changed')
    webhook.reply = ({ mcp_request: { params } }) => (params['name'] === 'echo' ? deny('not now') : allow)
    t.match((await call('echo', { text: 'a' })).text, 'call denied by a webhook: not now')
    t.match((await call('flow', { text: 'a' })).text, 'call denied by a webhook: not now')
  })
}

t.test('webhooks get each call of a script, and its result', async (t) => {
  const [webhook, mask] = await Promise.all([
    started(t, ({ mcp_request: { params } }) =>
      params['name'] === 'test_simple_text' ? deny('not this') : allow,
    ),
    started(t, ({ mcp_request: { params } }) =>
      params['name'] === 'echo'
        ? patch({ op: 'replace', path: '/mcp_response/result/content/0/text', value: 'masked' })
        : allow,
    ),
  ])
  const rig = await startWebhookRig(
    t,
    { validating: [hook('v', webhook)], mutating: [hook('m', mask, { phase: 'response' })] },
    { codeMode: { enabled: true } },
  )
  const ask = await rig.as('stateless', 'alice')
  const run = (script: string) => ask('tools/call', { name: 'execute_tool_script', arguments: { script } })
  t.match((await run('return echo(text="secret")')).text, 'masked')
  t.match((await run('return test_simple_text()')).text, 'call denied by a webhook: not this')
  t.same(seen(webhook), ['execute_tool_script', 'echo', 'execute_tool_script', 'test_simple_text'])
})

t.test(
  'a webhook for one backend or tool matches original names, whatever name the client uses',
  async (t) => {
    const [byTool, byBackend, other] = await Promise.all([started(t), started(t), started(t)])
    const rig = await startWebhookRig(
      t,
      {
        validating: [
          hook('tool', byTool, { match: { tools: ['echo'] } }),
          hook('backend', byBackend, { match: { backends: ['fixture'], methods: ['tools/call'] } }),
          hook('other', other, { match: { backends: ['elsewhere'] } }),
        ],
      },
      {
        aggregation: {
          ...(bareNames('fixture') as object),
          tools: [{ workload: 'fixture', overrides: { echo: { name: 'parrot' } } }],
        },
      },
    )
    const ask = await rig.as('stateless', 'alice')
    t.match((await ask('tools/call', { name: 'parrot', arguments: { text: 'hi' } })).text, 'hi')
    t.same(byTool.asked[0]?.request.context['gatehouse'], { phase: 'request', original: 'echo' })
    t.match(byTool.asked[0]?.request.mcp_request.params, { name: 'parrot' })
    await ask('tools/call', { name: 'test_simple_text', arguments: {} })
    await ask('prompts/get', { name: 'test_simple_prompt' })
    t.same([byTool.asked.length, byBackend.asked.length, other.asked.length], [1, 2, 0])
    await ask('tools/call', { name: 'nothing' })
    t.equal(other.asked.length, 1, 'the webhook is called when the target of a name is unknown')
  },
)

t.test('arguments from a webhook must match the approved schema, or the call is not made', async (t) => {
  const webhook = await started(t, () => patch({ op: 'add', path: `${args}/force`, value: true }))
  const backend = await startChanging(t, [
    changed(approved, {
      inputSchema: { type: 'object', properties: { path: { type: 'string' }, force: { type: 'boolean' } } },
    }),
  ])
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    {
      aggregation: bareNames('raw'),
      pinning: pinning('freeze'),
      toolLocks: [lockOf('raw', [approved])],
      webhooks: { mutating: [hook('m', webhook)] },
    },
  )
  t.teardown(() => vmcp.close())
  const { text } = await stateless(vmcp.url, 'tools/call', { name: 'read', arguments: { path: 'a' } })
  t.match(text, 'the arguments do not match the approved definition')
  t.notOk(
    backend.requests.some(({ method }) => method === 'tools/call'),
    'the backend receives nothing',
  )
})

t.test('a call that waits for a webhook is checked by the reloaded policies', async (t) => {
  const { promise: reloaded, resolve: continueCall } = Promise.withResolvers<undefined>()
  const { promise: waiting, resolve: reportWaiting } = Promise.withResolvers<undefined>()
  const webhook = await started(t, () => (res, request) => {
    reportWaiting(undefined)
    void reloaded.then(() => answer(res, request, allow))
  })
  const backend = await startChanging(t, [approved])
  const settings = { aggregation: bareNames('raw'), webhooks: { validating: [hook('slow', webhook)] } }
  const authz = (policy: string) => ({
    ...settings,
    incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: [policy] } },
  })
  const allowed = authz('permit(principal, action, resource);')
  const vmcp = await startTestVmcp({ raw: backend.url }, allowed)
  t.teardown(() => vmcp.close())
  const response = stateless(vmcp.url, 'tools/call', { name: 'read', arguments: { path: 'a' } })
  await waiting
  vmcp.reload(vmcpConfig({ raw: backend.url }, authz('forbid(principal, action, resource);')))
  continueCall(undefined)
  t.match((await response).response?.error, { code: 403 })
  t.notOk(
    backend.requests.some(({ method }) => method === 'tools/call'),
    'the backend receives no call',
  )
})
