/** Tests webhooks of a proxy over HTTPS with a private CA, for clients and targets of both protocol eras. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runGatehouse, startGatehouse } from '../helpers/gatehouse.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { openSession, stateless } from '../helpers/mcp/wire.ts'
import { makeCertificates } from '../helpers/redis.ts'
import { sendJson, startJsonServer } from '../helpers/vmcp/json-server.ts'

interface HookRequest {
  readonly uid: string
  readonly mcp_request?: { readonly method: string; readonly params?: { readonly name?: string } }
}

/** Denies one tool, and records the names of all requested tools. */
async function startHook(t: Test) {
  const { certFile, keyFile, caFile, remove } = makeCertificates()
  const asked: string[] = []
  const hook = await startJsonServer(
    (text, _req, res) => {
      const { uid, mcp_request: request } = JSON.parse(text) as HookRequest
      const name = request?.params?.name
      if (request?.method === 'tools/call') asked.push(name ?? '')
      sendJson(res, { version: 'v0.1.0', uid, allowed: name !== 'test_simple_text', message: 'not here' })
    },
    { key: readFileSync(keyFile), cert: readFileSync(certFile) },
  )
  t.teardown(async () => {
    await hook.close()
    remove()
  })
  const file = join(t.testdir({}), 'webhooks.yaml')
  const url = `${hook.origin.replace('127.0.0.1', 'localhost')}/hook`
  const write = (ca: object): void =>
    writeFileSync(file, JSON.stringify({ validating: [{ name: 'dlp', url, tls_config: ca }] }))
  write({ ca_bundle_path: caFile })
  return { file, asked, write }
}

for (const era of ['session', 'stateless'] as const)
  t.test(
    `webhooks of a proxy: target of the ${era} era, clients of both eras`,
    { timeout: 60_000 },
    async (t) => {
      const [hook, fixture] = await Promise.all([startHook(t), startFixture({ era })])
      t.teardown(() => fixture.close())
      const target = ['--target-uri', new URL(fixture.url).origin, '--webhook-config', hook.file]
      const proxy = startGatehouse(['proxy', ...target, '--host', '127.0.0.1', '--port', '0', 'x'])
      t.teardown(() => proxy.interrupt())
      const [, port] = await proxy.waitFor(/on port (\d+)/)
      const url = `http://127.0.0.1:${port}/mcp`
      const session = await openSession(url)
      const call = (name: string) => ({ name, arguments: { text: 'hello' } })
      for (const ask of [
        (name: string) => stateless(url, 'tools/call', call(name)),
        (name: string) => session.request('tools/call', call(name)),
      ]) {
        t.match((await ask('echo')).text, 'hello')
        const { response } = await ask('test_simple_text')
        t.match(response?.error, { code: 403, message: 'call denied by a webhook: not here' })
      }
      t.same(hook.asked, ['echo', 'test_simple_text', 'echo', 'test_simple_text'])
    },
  )

t.test(
  'webhooks of a proxy: an untrusted certificate is a failure, and the call is rejected',
  { timeout: 60_000 },
  async (t) => {
    const [hook, fixture] = await Promise.all([startHook(t), startFixture()])
    t.teardown(() => fixture.close())
    hook.write({})
    const target = ['--target-uri', new URL(fixture.url).origin, '--webhook-config', hook.file]
    const proxy = startGatehouse(['proxy', ...target, '--host', '127.0.0.1', '--port', '0', 'x'])
    t.teardown(() => proxy.interrupt())
    const [, port] = await proxy.waitFor(/on port (\d+)/)
    const { response } = await stateless(`http://127.0.0.1:${port}/mcp`, 'tools/call', { name: 'echo' })
    t.ok(response?.error)
    t.same(hook.asked, [])
  },
)

t.test('--stateless cannot be combined with webhooks', async (t) => {
  const { file } = await startHook(t)
  const flags = ['--stateless', '--webhook-config', file, '--target-uri', 'https://x.example.com']
  t.match(await runGatehouse(['proxy', ...flags, 'x']), {
    code: 2,
    stderr: /--stateless: cannot be combined with --webhook-config/,
  })
})
