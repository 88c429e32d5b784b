/**
 * `gatehouse proxy --webhook-config`: webhooks for the calls of one target, with files in ToolHive's format and in
 * Gatehouse's own, for clients of both eras.
 */
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { startGatehouse } from '../../helpers/gatehouse.ts'
import { connect } from '../../helpers/mcp/clients.ts'
import { type Fixture, startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import {
  type RawBackend,
  type RawRequest,
  startRawBackend,
  textResult,
} from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { type Ask, type Era, eras } from '../../helpers/decisions/decision-rig.ts'
import {
  allow,
  answer,
  certificates,
  deny,
  patch,
  startWebhook,
  type TestWebhook,
} from '../../helpers/vmcp/webhook.ts'

t.setTimeout(300_000)

const unavailable = 'a required webhook returned no valid response: try again later'
const toolCalls = ({ requests }: RawBackend): number =>
  requests.filter(({ method }) => method === 'tools/call').length
const echo = (ask: Ask, text = 'hello') => ask('tools/call', { name: 'echo', arguments: { text } })

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-proxy-webhooks-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function webhook(t: Test, reply?: TestWebhook['reply']): Promise<TestWebhook> {
  const started = await startWebhook(reply)
  t.teardown(() => started.close())
  return started
}

/** A webhook in the format of ToolHive's files. */
function entry(
  name: string,
  { url }: TestWebhook,
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  const tls = { ca_bundle_path: certificates.caFile }
  return { name, url, failure_policy: 'fail', tls_config: tls, ...more }
}

async function fixture(t: Test): Promise<Fixture> {
  const started = await startFixture({ era: 'both' })
  t.teardown(() => started.close())
  return started
}

/** Returns the port of `gatehouse proxy` with these arguments. */
async function proxied(t: Test, args: readonly string[], env: Record<string, string> = {}): Promise<string> {
  const run = startGatehouse(['proxy', '--port', '0', ...args, 'notes'], { ...process.env, ...env })
  t.teardown(() => run.interrupt())
  const [, port] = await run.waitFor(/started for server notes on port (\d+)/)
  return `http://127.0.0.1:${port}`
}

async function proxy(
  t: Test,
  target: Pick<Fixture | RawBackend, 'url'>,
  files: readonly unknown[],
  env?: Record<string, string>,
): Promise<(era: Era) => Promise<Ask>> {
  const path = folder(t)
  const named = files.flatMap((content, index) => {
    const file = join(path, `${index}.json`)
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
    return ['--webhook-config', file]
  })
  const origin = await proxied(t, ['--target-uri', new URL(target.url).origin, ...named], env)
  return async (era) => {
    if (era === 'stateless') return (method, params) => stateless(`${origin}/mcp`, method, params)
    const session = await openSession(`${origin}/mcp`)
    return (method, params) => session.request(method, params)
  }
}

t.test('webhooks can allow, change and deny calls, also with 422', async (t) => {
  const [mutating, validating] = await Promise.all([webhook(t), webhook(t)])
  const responses = {
    'tools/call': ({ params }: RawRequest) => textResult(JSON.stringify(params['arguments'])),
  }
  const backend = await startRawBackend({ responses })
  t.teardown(() => backend.close())
  const as = await proxy(t, backend, [
    { mutating: [entry('mask', mutating, { timeout: '5s' })] },
    `validating:\n  - ${JSON.stringify(entry('check', validating, { timeout: 5_000_000_000 }))}\n`,
  ])
  for (const era of eras) {
    const ask = await as(era)
    validating.reply = mutating.reply = () => allow
    t.match((await echo(ask)).text, 'hello', `${era}: allowed`)
    t.match(validating.asked.at(-1)?.request, {
      version: 'v0.1.0',
      mcp_request: { method: 'tools/call', params: { name: 'echo', arguments: { text: 'hello' } } },
      context: { server_name: 'notes', backend_server: 'notes', gatehouse: { original: 'echo' } },
    })
    mutating.reply = () =>
      patch({ op: 'replace', path: '/mcp_request/params/arguments/text', value: 'masked' })
    const changed = await echo(ask, 'secret')
    t.match(changed.text, 'masked')
    t.notMatch(changed.text, 'secret')
    const { arguments: seen } = validating.asked.at(-1)?.request.mcp_request.params ?? {}
    t.same(seen, { text: 'masked' }, 'the changed call is validated')

    const before = toolCalls(backend)
    validating.reply = () => deny('not today', 'rule-7')
    const { response, text } = await echo(ask)
    t.match(response?.error, { code: 403, message: 'call denied by a webhook: not today' })
    t.notMatch(text, 'rule-7', 'only operators see the reason')
    for (const one of [validating, mutating]) {
      mutating.reply = validating.reply = () => allow
      one.reply = () => (res) => void res.writeHead(422).end()
      t.match((await echo(ask)).response?.error, { code: 403, message: 'call denied by a webhook' })
    }
    t.equal(toolCalls(backend), before, 'the target receives nothing')
  }
})

t.test(
  'a webhook without a response rejects the call, or is skipped with ignore, but a denial always counts',
  async (t) => {
    const [down, slow, other, no] = await Promise.all([
      webhook(t),
      webhook(t, () => () => {}),
      webhook(t, () => (res, asked) => answer(res, { ...asked, uid: 'x' }, allow)),
      webhook(t, () => deny('no')),
    ])
    await down.close()
    const names = ['down', 'slow', 'other', 'no'].flatMap((name) => [`${name}-fail`, `${name}-ignore`])
    const backend = await startRawBackend({
      tools: () => names.map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })),
      responses: { 'tools/call': () => textResult('called') },
    })
    t.teardown(() => backend.close())
    const validating = Object.entries({ down, slow, other, no }).flatMap(([name, one]) =>
      ['fail', 'ignore'].map((policy) =>
        entry(`${name}-${policy}`, one, {
          failure_policy: policy,
          timeout: name === 'slow' ? '1s' : '20s',
          match: { tools: [`${name}-${policy}`] },
        }),
      ),
    )
    const as = await proxy(t, backend, [{ validating }])
    for (const era of eras) {
      const ask = await as(era)
      for (const name of names) {
        const { response } = await ask('tools/call', { name, arguments: {} })
        const what = `${era}: ${name}`
        if (name.startsWith('no-')) t.match(response?.error, { code: 403 }, what)
        else if (name.endsWith('-fail'))
          t.match(response?.error, { code: -32603, message: unavailable }, what)
        else t.match(response?.result, { content: [{ text: 'called' }] }, what)
      }
    }
  },
)

t.test('responses of the target in JSON and in event streams; phase response', async (t) => {
  const value = 'withheld'
  const one = await webhook(t, () =>
    patch({ op: 'replace', path: '/mcp_response/result/content/0/text', value }),
  )
  const json = await startRawBackend({ responses: { 'tools/call': () => textResult('plain') } })
  t.teardown(() => json.close())
  for (const target of [json, await fixture(t)]) {
    const as = await proxy(t, target, [{ mutating: [entry('scan', one, { phase: 'response' })] }])
    for (const era of eras) {
      const { response } = await echo(await as(era))
      t.match(response?.result, { content: [{ text: value }] }, era)
    }
  }
})

t.test('requests are signed, with a secret from the provider or from a file', async (t) => {
  const path = folder(t)
  writeFileSync(join(path, 'in-folder'), 'of the folder\n')
  const secrets = {
    'in-folder': 'of the folder',
    'in-variable': 'of the variable',
    'in-variable,target=HMAC': 'of the variable',
    [join(path, 'in-folder')]: 'of the folder',
  }
  const [backend, one] = await Promise.all([fixture(t), webhook(t)])
  const validating = Object.keys(secrets).map((hmac_secret_ref, n) =>
    entry(`v${n}`, { ...one, url: `${one.url}/${n}` }, { hmac_secret_ref }),
  )
  const as = await proxy(t, backend, [{ validating }], {
    GATEHOUSE_SECRETS_PROVIDER: 'file',
    GATEHOUSE_SECRETS_DIR: path,
    GATEHOUSE_SECRET_IN_VARIABLE: 'of the variable',
  })
  t.match((await echo(await as('stateless'))).text, 'hello')
  t.equal(one.asked.length, validating.length)
  for (const [n, [reference, secret]] of Object.entries(secrets).entries()) {
    const asked = one.asked.find(({ path: at }) => at.endsWith(`/${n}`))
    if (!asked) throw new Error(`it was not asked with ${reference}`)
    const { headers, text } = asked
    const time = String(headers['x-toolhive-timestamp'])
    const made = createHmac('sha256', secret).update(`${time}.${text}`).digest('hex')
    t.equal(headers['x-toolhive-signature'], `sha256=${made}`, reference)
  }
})

t.test(
  'requests name callers with tokens, and a later file replaces a webhook of the same name',
  async (t) => {
    const [backend, one, later, issuer] = await Promise.all([
      fixture(t),
      webhook(t),
      webhook(t),
      startTokenIssuer(),
    ])
    t.teardown(() => issuer.close())
    const path = folder(t)
    const [file, more] = [join(path, 'proxy.json'), join(path, 'hooks.json')]
    const { issuer: from, jwksUrl, audience } = issuer
    const own = { name: 'v', url: one.url, caBundlePath: certificates.caFile }
    const settings = {
      name: 'notes',
      targetUri: new URL(backend.url).origin,
      oidc: { issuer: from, jwksUrl, audience, jwksAllowPrivateIp: true, insecureAllowHttp: true },
      webhooks: { validating: [own, { ...own, name: 'u' }] },
    }
    writeFileSync(file, JSON.stringify(settings))
    writeFileSync(more, JSON.stringify({ validating: [entry('v', later)] }))
    const url = `${await proxied(t, ['--config', file, '--webhook-config', more])}/mcp`
    t.equal((await stateless(url, 'tools/list')).status, 401)
    const headers = { authorization: `Bearer ${await issuer.token('alice', { groups: ['dev'] })}` }
    const { text } = await stateless(
      url,
      'tools/call',
      { name: 'echo', arguments: { text: 'hello' } },
      { headers },
    )
    t.match(text, 'hello')
    for (const { asked } of [one, later]) {
      t.equal(asked.length, 1, 'u from the file, v from the flag')
      t.match(asked[0]?.request.principal, { sub: 'alice', groups: ['dev'] })
      t.notOk(asked[0]?.headers.authorization, "the caller's token is not sent")
    }
  },
)

t.test('clients and targets of HTTP+SSE', async (t) => {
  const [backend, one] = await Promise.all([
    fixture(t),
    webhook(t, ({ mcp_request: { params } }) => (params.arguments?.['text'] === 'bad' ? deny('no') : allow)),
  ])
  const path = folder(t)
  const [file, hooks] = [join(path, 'proxy.json'), join(path, 'hooks.json')]
  const targetUri = new URL(backend.url).origin
  writeFileSync(file, JSON.stringify({ name: 'notes', targetUri, transport: 'sse', proxyMode: 'sse' }))
  writeFileSync(hooks, JSON.stringify({ validating: [entry('v', one)] }))
  const origin = await proxied(t, ['--config', file, '--webhook-config', hooks])
  const client = await connect('sdk1', `${origin}/sse`, { sse: true })
  t.teardown(() => client.close())
  t.match(await client.callText('echo', { text: 'good' }), 'good')
  await t.rejects(client.callText('echo', { text: 'bad' }), /call denied by a webhook: no/)
})

t.test('a setting that cannot be enforced is an error, and nothing is opened', async (t) => {
  const path = folder(t)
  const [hooks, bare, stdio, tables] = ['hooks', 'bare', 'stdio', 'proxy'].map((name) =>
    join(path, `${name}.json`),
  )
  const file = (at: string | undefined, content: unknown) => writeFileSync(at ?? '', JSON.stringify(content))
  const settings = {
    name: 'v',
    url: 'https://hook.example',
    tls_config: { ca_bundle_path: '/does/not/exist' },
  }
  file(hooks, { validating: [settings] })
  file(bare, { validating: [{ name: 'v', url: 'http://hook.example' }] })
  file(stdio, { name: 'notes', stdio: { command: 'true' } })
  file(tables, { name: 'notes', targetUri: 'http://127.0.0.1:9', webhooks: { validating: [{ name: 'v' }] } })
  const target = ['--target-uri', 'http://127.0.0.1:9']
  const given = (...files: (string | undefined)[]) => files.flatMap((one) => ['--webhook-config', one ?? ''])
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [
      [...target, ...given(hooks)],
      /hooks\.json.*validating\[0\]\.tls_config\.ca_bundle_path: the file \/does\/not\/exist cannot be read/s,
    ],
    [
      [...target, ...given(bare, join(path, 'none'))],
      /bare\.json.*validating\[0\]\.url: must be https.*none cannot be read/s,
    ],
    [
      [...target, ...given(hooks), '--remote-auth'],
      /--remote-auth: cannot be combined with --webhook-config/,
    ],
    [['--config', stdio ?? '', ...given(hooks)], /--webhook-config: the target must be a URL, not a program/],
    [['--config', tables ?? ''], /webhooks\.validating\[0\]\.url/],
  ]
  for (const [args, message] of rows) {
    const run = startGatehouse(['proxy', ...args, 'notes'])
    if (run.child.exitCode === null) await once(run.child, 'close')
    t.equal(run.child.exitCode, 2, args.join(' '))
    t.match(run.output(), message)
  }
})
