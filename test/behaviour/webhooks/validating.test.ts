/** Validating webhooks, over HTTPS and in both eras: their requests, the effect of their responses, and the reports. */
import t from 'tap'
import { eras, type Ask } from '../../helpers/decisions/decision-rig.ts'
import { allow, deny, startWebhook } from '../../helpers/vmcp/webhook.ts'
import { hook, startWebhookRig } from '../../helpers/vmcp/webhook-rig.ts'

const echo = (ask: Ask, text: unknown = 'hello') => ask('tools/call', { name: 'echo', arguments: { text } })

for (const era of eras) {
  t.test(`${era} era: webhooks get calls, prompts and resources, which continue when allowed`, async (t) => {
    const webhook = await startWebhook()
    t.teardown(() => webhook.close())
    const rig = await startWebhookRig(t, { validating: [hook('audit', webhook)] })
    const ask = await rig.as(era, 'alice', { email: 'a@example.com', name: 'Alice', groups: ['dev'] })
    t.match((await echo(ask)).text, 'hello')
    const [asked] = webhook.asked
    t.match(asked?.request, {
      version: 'v0.1.0',
      principal: { sub: 'alice', email: 'a@example.com', name: 'Alice', groups: ['dev'] },
      mcp_request: {
        jsonrpc: '2.0',
        method: 'tools/call',
        params: { name: 'echo', arguments: { text: 'hello' } },
      },
      context: {
        server_name: 'test-vmcp',
        backend_server: 'fixture',
        transport: 'streamable-http',
        gatehouse: { phase: 'request', original: 'echo' },
      },
    })
    t.match(asked?.headers['content-type'], 'application/json')
    t.notOk(asked?.headers.authorization, "the caller's token is not sent")
    t.notOk(asked?.headers['x-toolhive-signature'], 'nothing to sign with')
    await ask('prompts/get', { name: 'test_simple_prompt' })
    await ask('resources/read', { uri: 'test://static-text' })
    t.same(
      webhook.asked.map(({ request }) => request.mcp_request.method),
      ['tools/call', 'prompts/get', 'resources/read'],
    )
    await ask('tools/list')
    t.equal(webhook.asked.length, 3, 'lists are not sent to webhooks')
    t.match((await rig.audited(1))[0], {
      outcome: 'success',
      webhooks: [{ name: 'audit', phase: 'request', outcome: 'allowed' }],
    })
  })

  t.test(`${era} era: a denial rejects the call with the message of the webhook`, async (t) => {
    const webhook = await startWebhook(() => deny('no secrets in arguments', 'rule-7'))
    t.teardown(() => webhook.close())
    const rig = await startWebhookRig(t, { validating: [hook('dlp', webhook)] })
    const ask = await rig.as(era, 'alice')
    await ask('tools/list')
    const before = rig.fixture.state.requests.length
    const { response, text } = await echo(ask)
    t.match(response?.error, { code: 403, message: 'call denied by a webhook: no secrets in arguments' })
    t.notMatch(text, 'rule-7', 'only operators see the reason')
    t.equal(rig.fixture.state.requests.length, before, 'the backend receives nothing')
    webhook.reply = () => deny()
    t.match((await echo(ask)).response?.error, { code: 403, message: 'call denied by a webhook' })
    webhook.reply = () => (res) => void res.writeHead(422).end()
    t.match((await echo(ask)).response?.error, { code: 403, message: 'call denied by a webhook' })
    t.match((await rig.audited(3))[0], {
      outcome: 'denied',
      webhooks: [{ name: 'dlp', phase: 'request', outcome: 'denied', reason: 'rule-7' }],
      metadata: { extra: { denial_reason: 'webhook_denied' } },
    })
    t.match(
      await rig.metrics(),
      /gatehouse_webhook_calls_total\{[^}]*webhook="dlp"[^}]*outcome="denied"[^}]*\} 3/,
    )
  })

  t.test(`${era} era: several webhooks are called in order, until the first denial`, async (t) => {
    const [first, second] = await Promise.all([startWebhook(), startWebhook()])
    t.teardown(async () => void (await Promise.all([first.close(), second.close()])))
    const rig = await startWebhookRig(t, { validating: [hook('first', first), hook('second', second)] })
    const ask = await rig.as(era, 'alice')
    await echo(ask)
    t.same([first.asked.length, second.asked.length], [1, 1])
    const uids = new Set([first.asked[0]?.request.uid, second.asked[0]?.request.uid])
    t.equal(uids.size, 2, 'each request has its own uid')
    first.reply = () => deny('no')
    await echo(ask)
    t.same([first.asked.length, second.asked.length], [2, 1])
    first.reply = () => allow
    second.reply = () => deny('no')
    t.match((await echo(ask)).response?.error, { code: 403 })
  })
}
