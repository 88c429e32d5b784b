/** Authentication between webhook and gateway, changed settings, and unusable settings. */
import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { makeCertificates } from '../../helpers/redis.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'
import { type AskedWebhook, certificates, deny, startWebhook } from '../../helpers/vmcp/webhook.ts'
import { hook } from '../../helpers/vmcp/webhook-rig.ts'

const unavailable = 'a required webhook returned no valid response: try again later'

t.test('mutual TLS and signed requests work, and a rotated secret takes effect', async (t) => {
  const other = makeCertificates()
  const folder = mkdtempSync(join(tmpdir(), 'webhook-'))
  const hmacSecretPath = join(folder, 'hmac')
  writeFileSync(hmacSecretPath, 'first\n')
  const [webhook, backend] = await Promise.all([startWebhook(undefined, { mutual: true }), startRawBackend()])
  t.teardown(async () => {
    await Promise.all([webhook.close(), backend.close()])
    other.remove()
    rmSync(folder, { recursive: true })
  })
  const call = async (more: Record<string, unknown>) => {
    const { caBundlePath, ...rest } = hook('v', webhook, more)
    const settings = more['caBundlePath'] === null ? rest : { ...rest, caBundlePath }
    const vmcp = await startTestVmcp(
      { raw: backend.url },
      { aggregation: bareNames('raw'), webhooks: { validating: [settings] } },
    )
    t.teardown(() => vmcp.close())
    return () => stateless(vmcp.url, 'tools/call', { name: 'echo', arguments: { text: 'hello' } })
  }
  const pair = { clientCertificatePath: certificates.certFile, clientKeyPath: certificates.keyFile }
  const own = await call({ ...pair, hmacSecretPath })
  t.match((await own()).text, 'hello')
  const lastAsked = (): AskedWebhook => {
    const asked = webhook.asked.at(-1)
    if (!asked) throw new Error('it was not asked')
    return asked
  }
  const signedWith = (secret: string): boolean => {
    const { headers, text } = lastAsked()
    const time = String(headers['x-toolhive-timestamp'])
    const made = createHmac('sha256', secret).update(`${time}.${text}`).digest('hex')
    return /^\d+$/.test(time) && headers['x-toolhive-signature'] === `sha256=${made}`
  }
  t.ok(signedWith('first'))
  writeFileSync(hmacSecretPath, 'second')
  while (!signedWith('second')) {
    await setTimeout(100)
    await own()
  }
  t.pass('the rotated secret signs')

  const refused = async (more: Record<string, unknown>, why: string) =>
    t.match((await (await call(more))()).response?.error, { message: unavailable }, why)
  await refused({}, 'without a client certificate')
  await refused({ ...pair, caBundlePath: null }, 'a webhook that nobody vouches for')
  const foreign = { clientCertificatePath: other.certFile, clientKeyPath: other.keyFile }
  await refused(foreign, 'a certificate of another authority')
})

t.test('a changed file: other webhooks are called, and problems of the earlier ones end', async (t) => {
  const [down, up, backend] = await Promise.all([
    startWebhook(),
    startWebhook(() => deny('no')),
    startRawBackend(),
  ])
  await down.close()
  const settings = (webhooks: unknown) => ({
    aggregation: bareNames('raw'),
    ...(webhooks ? { webhooks } : {}),
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, settings({ validating: [hook('one', down)] }))
  t.teardown(async () => void (await Promise.all([vmcp.close(), up.close(), backend.close()])))
  const call = () => stateless(vmcp.url, 'tools/call', { name: 'echo', arguments: {} })
  const status = async () => (await fetch(`${vmcp.origin}/status`)).text()
  const reload = (webhooks: unknown) => vmcp.reload(vmcpConfig({ raw: backend.url }, settings(webhooks)))
  for (let i = 0; i < 3; i++) t.match((await call()).response?.error, { message: unavailable })
  t.match(await status(), 'webhook one returns no valid responses')
  reload({ validating: [hook('two', up)] })
  t.notMatch(await status(), 'returns no valid responses')
  t.match((await call()).response?.error, { code: 403 })
  reload(undefined)
  t.ok((await call()).response?.result, 'no webhook is called any more')
  t.equal(up.asked.length, 1)
})

t.test('unusable settings prevent the start', async (t) => {
  const start = (...validating: Record<string, unknown>[]) => startTestVmcp({}, { webhooks: { validating } })
  const url = 'https://hook.example'
  const wrong: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ url: 'http://hook.example' }, /must be https/],
    [{ url: 'https://user:pass@hook.example' }, /url/],
    [{ url: 'https://169.254.169.254' }, /never allowed/],
    [{ url, timeout: '60s' }, /from 1s to 30s/],
    [{ url, clientCertificatePath: '/x' }, /must be set together/],
    [{ url, insecureSkipVerify: true, caBundlePath: '/x' }, /cannot be combined/],
    [{ url, caBundlePath: '/does/not/exist' }, /webhooks\.validating\[v\]\.caBundlePath.*cannot be read/],
    [{ url, hmacSecretPath: '/does/not/exist' }, /\/does\/not\/exist cannot be read/],
  ]
  for (const [settings, message] of wrong)
    await t.rejects(async () => start({ name: 'v', ...settings }), { message })
  const twice = { validating: [{ name: 'v', url }], mutating: [{ name: 'v', url }] }
  await t.rejects(startTestVmcp({}, { webhooks: twice }), { message: /duplicate name v/ })
})
