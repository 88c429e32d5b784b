/** Misbehaving webhooks, and callers who misuse them: no failure becomes a permission, unless `ignore` allows it. */
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { sendJson } from '../../helpers/vmcp/json-server.ts'
import { type Ask, eras } from '../../helpers/decisions/decision-rig.ts'
import {
  allow,
  answer,
  deny,
  startWebhook,
  type TestWebhook,
  type WebhookReply,
} from '../../helpers/vmcp/webhook.ts'
import { hook, startWebhookRig } from '../../helpers/vmcp/webhook-rig.ts'

const echo = (ask: Ask, text: unknown = 'hello') => ask('tools/call', { name: 'echo', arguments: { text } })
const unavailable = 'a required webhook returned no valid response: try again later'
const json = { 'content-type': 'application/json' }
/** Longer than the timeout of a webhook. */
const never: WebhookReply = () => {}

async function started(t: Test, reply?: TestWebhook['reply']): Promise<TestWebhook> {
  const webhook = await startWebhook(reply)
  t.teardown(() => webhook.close())
  return webhook
}

const failures: Readonly<Record<string, { readonly reply: WebhookReply; readonly reason: string }>> = {
  'an error': {
    reply: (res, asked) => sendJson(res, { version: 'v0.1.0', uid: asked.uid, allowed: true }, 500),
    reason: 'status',
  },
  'a gateway error': { reply: (res) => void res.writeHead(503).end(), reason: 'status' },
  'another success': {
    reply: (res, asked) => sendJson(res, { version: 'v0.1.0', uid: asked.uid, allowed: true }, 202),
    reason: 'status',
  },
  'no content': { reply: (res) => void res.writeHead(204).end(), reason: 'status' },
  'a redirect': { reply: (res) => void res.writeHead(307, { location: '/allow' }).end(), reason: 'redirect' },
  'another type': {
    reply: (res, { uid }) =>
      void res
        .writeHead(200, { 'content-type': 'text/plain' })
        .end(JSON.stringify({ version: 'v0.1.0', uid, allowed: true })),
    reason: 'content_type',
  },
  'no type': {
    reply: (res, { uid }) =>
      void res.writeHead(200).end(JSON.stringify({ version: 'v0.1.0', uid, allowed: true })),
    reason: 'content_type',
  },
  'no JSON': { reply: (res) => void res.writeHead(200, json).end('allowed'), reason: 'malformed' },
  'a list': { reply: (res) => sendJson(res, [{ allowed: true }]), reason: 'malformed' },
  'two objects': {
    reply: (res, { uid }) =>
      void res.writeHead(200, json).end(`${JSON.stringify({ version: 'v0.1.0', uid, allowed: true })} {}`),
    reason: 'malformed',
  },
  'a member twice': {
    reply: (res, { uid }) =>
      void res.writeHead(200, json).end(`{"version":"v0.1.0","uid":"${uid}","allowed":false,"allowed":true}`),
    reason: 'malformed',
  },
  'a text': { reply: (res, asked) => answer(res, asked, { allowed: 'true' }), reason: 'malformed' },
  'no decision': { reply: (res, asked) => answer(res, asked, {}), reason: 'malformed' },
  'another uid': { reply: (res, asked) => answer(res, { ...asked, uid: 'x' }, allow), reason: 'mismatch' },
  'no uid': { reply: (res) => sendJson(res, { version: 'v0.1.0', allowed: true }), reason: 'mismatch' },
  'another version': {
    reply: (res, asked) => answer(res, asked, { ...allow, version: 'v9' }),
    reason: 'mismatch',
  },
  'too much': {
    reply: (res, asked) => answer(res, asked, { ...allow, details: 'x'.repeat(1_100_000) }),
    reason: 'too_large',
  },
  'a patch of one that validates': {
    reply: (res, asked) => answer(res, asked, { ...allow, patch_type: 'json_patch', patch: [] }),
    reason: 'patch',
  },
  'a broken body': {
    reply(res) {
      res.writeHead(200, { ...json, 'content-length': '100' }).write('{"allowed":true}')
      res.destroy()
    },
    reason: 'unreachable',
  },
  'a slow drip': {
    reply(res) {
      res.writeHead(200, json)
      const drip = setInterval(() => res.write(' '), 50)
      res.once('close', () => clearInterval(drip))
    },
    reason: 'timeout',
  },
  silence: { reply: never, reason: 'timeout' },
}

for (const era of eras) {
  t.test(`${era} era: an invalid response rejects the call, or is ignored`, async (t) => {
    const [strict, lax] = await Promise.all([started(t), started(t)])
    const settings = { timeout: '1s', circuitBreaker: { failureThreshold: 100 } }
    const rig = await startWebhookRig(t, { validating: [hook('strict', strict, settings)] })
    const laxRig = await startWebhookRig(t, {
      validating: [hook('lax', lax, { ...settings, failurePolicy: 'ignore' })],
    })
    const [ask, askLax] = await Promise.all([rig.as(era, 'alice'), laxRig.as(era, 'alice')])
    const told: string[] = []
    for (const [name, { reply, reason }] of Object.entries(failures)) {
      strict.reply = lax.reply = () => reply
      const [refused, ignored] = await Promise.all([echo(ask), echo(askLax)])
      t.match(refused.response?.error, { code: -32603, message: unavailable }, name)
      t.notMatch(refused.text, strict.url)
      t.match(ignored.text, 'hello', `${name}, ignored`)
      told.push(reason)
    }
    await Promise.all([rig.audited(told.length), laxRig.audited(told.length)])
    t.same(
      rig.audit().flatMap(({ webhooks = [] }) => webhooks.map(({ outcome }) => outcome)),
      told,
    )
    t.match(rig.audit()[0], { metadata: { extra: { denial_reason: 'webhook_failed' } } })
    t.match(laxRig.audit()[0], { outcome: 'success', webhooks: [{ name: 'lax', enforced: false }] })
    t.notOk(
      [...strict.asked, ...lax.asked].some(({ path }) => path === '/allow'),
      'no redirect was followed',
    )
    t.match(await rig.status(), /webhook strict returns no valid responses: calls are rejected/)
    t.match(
      await laxRig.status(),
      /webhook lax returns no valid responses: calls continue without the webhook/,
    )
    lax.reply = () => deny('no')
    t.match((await echo(askLax)).response?.error, { code: 403 }, 'a denial is not a failure')
    strict.reply = () => allow
    t.match((await echo(ask)).text, 'hello')
    t.notMatch(await rig.status(), 'returns no valid responses')
  })
}

t.test('a call that is too large for the webhook is rejected, whatever the failure policy', async (t) => {
  const webhook = await started(t)
  const rig = await startWebhookRig(t, {
    validating: [hook('v', webhook, { failurePolicy: 'ignore' })],
    mutating: [
      hook('m', webhook, { failurePolicy: 'ignore', phase: 'response', match: { tools: ['echo'] } }),
    ],
  })
  const ask = await rig.as('stateless', 'alice')
  const { response } = await echo(ask, 'x'.repeat(1_050_000))
  t.match(response?.error, { code: -32602, message: /exceeds the size limit for webhooks/ })
  t.equal(webhook.asked.length, 0)
  // The call alone fits the size limit easily, but its result together with the request does not.
  t.match((await echo(ask, 'x'.repeat(600_000))).response?.error, {
    code: -32603,
    message: 'the result exceeds the size limit for webhooks',
  })
})

t.test('in mode audit nothing has an effect, and everything is reported', async (t) => {
  const webhook = await started(t, () => deny('no', 'rule-1'))
  const rig = await startWebhookRig(t, { validating: [hook('trial', webhook, { mode: 'audit' })] })
  const ask = await rig.as('session', 'alice')
  t.match((await echo(ask)).text, 'hello')
  webhook.reply = () => (res) => sendJson(res, {}, 500)
  t.match((await echo(ask)).text, 'hello')
  t.match(
    (await rig.audited(2)).flatMap(({ webhooks }) => webhooks),
    [
      { name: 'trial', outcome: 'denied', reason: 'rule-1', enforced: false },
      { name: 'trial', outcome: 'status', enforced: false },
    ],
  )
  t.match(await rig.metrics(), /webhook_calls_total\{[^}]*webhook="trial"[^}]*outcome="denied"[^}]*\} 1/)
})

t.test('an open circuit stops calls to a webhook that is down', async (t) => {
  const webhook = await started(t, () => (res) => sendJson(res, {}, 503))
  const rig = await startWebhookRig(t, {
    validating: [hook('v', webhook, { circuitBreaker: { failureThreshold: 2, timeout: '1s' } })],
  })
  const ask = await rig.as('stateless', 'alice')
  for (let i = 0; i < 4; i++) t.match((await echo(ask)).response?.error, { message: unavailable })
  t.equal(webhook.asked.length, 2)
  t.match(await rig.metrics(), /outcome="circuit_open"[^}]*\} 2/)
  webhook.reply = () => allow
  while ((await echo(ask)).response?.error) await setTimeout(50)
  t.match((await echo(ask)).text, 'hello')
})

t.test('a caller who floods a slow webhook delays only itself', async (t) => {
  const held: (() => void)[] = []
  const webhook = await started(t, ({ principal }) =>
    principal['sub'] === 'mallory' ? (res, asked) => void held.push(() => answer(res, asked, allow)) : allow,
  )
  const other = await started(t)
  const rig = await startWebhookRig(t, {
    validating: [
      hook('slow', webhook, { timeout: '30s', match: { tools: ['echo'] } }),
      hook('other', other, { match: { tools: ['test_simple_text'] } }),
    ],
  })
  const [mallory, alice] = await Promise.all([rig.as('stateless', 'mallory'), rig.as('stateless', 'alice')])
  const flood = Array.from({ length: 60 }, () => echo(mallory))
  while (held.length < 16) await setTimeout(20)
  for (let i = 0; i < 5; i++) t.match((await echo(alice)).text, 'hello')
  t.equal(held.length, 16, 'no caller exceeds its share of open calls')
  t.match((await mallory('tools/call', { name: 'test_simple_text', arguments: {} })).text, 'simple text')
  const release = setInterval(() => {
    for (const end of held.splice(0)) end()
  }, 20)
  t.teardown(() => clearInterval(release))
  for (const { text } of await Promise.all(flood)) t.match(text, 'hello')
})

t.test('a caller cannot bypass a webhook with failure policy ignore by flooding it', async (t) => {
  const webhook = await started(t, () => () => undefined)
  const rig = await startWebhookRig(t, {
    validating: [
      hook('lax', webhook, {
        timeout: '1s',
        failurePolicy: 'ignore',
        circuitBreaker: { failureThreshold: 1000, timeout: '1s' },
      }),
    ],
  })
  const ask = await rig.as('stateless', 'mallory')
  const outcomes = () => rig.audit().flatMap(({ webhooks = [] }) => webhooks)
  const isBusy = ({ outcome }: Record<string, unknown>) => outcome === 'busy'
  // A slow machine sends them in sequence, and then they need not wait.
  do await Promise.all(Array.from({ length: 100 }, () => echo(ask)))
  while (!outcomes().some(isBusy))
  const told = outcomes()
  t.notOk(told.filter(isBusy).some(({ enforced }) => enforced === false))
  t.ok(told.some(({ outcome, enforced }) => outcome === 'timeout' && enforced === false))
})

t.test('a call with too many values for a patch is rejected', async (t) => {
  const patch = [{ op: 'add', path: '/mcp_request/params/arguments/more', value: 1 }]
  const webhook = await started(t, () => ({ ...allow, patch_type: 'json_patch', patch }))
  const rig = await startWebhookRig(t, { mutating: [hook('m', webhook, { failurePolicy: 'ignore' })] })
  const ask = await rig.as('stateless', 'alice')
  const many = Array.from({ length: 60_000 }, () => 1)
  const { response } = await ask('tools/call', { name: 'echo', arguments: { message: 'x', many } })
  t.match(response?.error, { code: -32602, message: /exceeds the size limit for webhooks/ })
})
