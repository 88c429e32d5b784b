/**
 * Settings of a virtual server with several processes: bounds, settings that exclude it, and Redis instead of the
 * primary's memory.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { missingRedis, startRedis } from '../../helpers/redis.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'
import { nextWorker, startServed } from '../../helpers/workers/served.ts'

t.setTimeout(180_000)
const dir = mkdtempSync(join(tmpdir(), 'settings-'))

t.test('an impossible setting is an error that names the field and the rule', async (t) => {
  const console = {
    enabled: true,
    publicUrl: 'https://console.example.com',
    auth: { type: 'oidc', issuer: 'https://idp.example.com', clientId: 'console' },
    roles: [{ role: 'viewer', claim: 'groups', values: ['staff'] }],
  }
  const file = (name: string, more: Record<string, unknown>): string => {
    const path = join(dir, name)
    writeFileSync(path, JSON.stringify({ ...vmcpConfig({}), ...more }))
    return path
  }
  const plain = file('plain.yaml', {})
  const serve = (...flags: string[]) => runGatehouse(['vmcp', 'serve', '--port', '0', ...flags])
  const cases: readonly [Promise<{ code: number | null; stderr: string }>, RegExp][] = [
    ...['0', '65', 'two', '1.5'].map((value): [ReturnType<typeof serve>, RegExp] => [
      serve('--config', plain, '--workers', value),
      /--workers: must be a whole number from 1 to 64, found/,
    ]),
    [
      serve('--config', file('many.yaml', { operational: { workers: 65 } })),
      /operational\.workers.*(64|at most)/,
    ],
    [
      serve('--config', file('console.yaml', { console }), '--workers', '2'),
      /console\.enabled: the console requires a single process, but operational\.workers \(--workers\) is 2/,
    ],
    [
      runGatehouse([
        'vmcp',
        'validate',
        '--config',
        file('both.yaml', { console, operational: { workers: 2 } }),
      ]),
      /console\.enabled: the console requires a single process/,
    ],
    [
      serve('--config', plain, '--workers', '2', '--pin-first', join(dir, 'locks')),
      /pinning\.noLock: pin requires a single process/,
    ],
  ]
  for (const [run, expected] of cases) {
    const { code, stderr } = await run
    t.equal(code, 2, stderr)
    t.match(stderr, expected)
  }
})

t.test('an address that is in use ends it with an error', async (t) => {
  const backend = await startRawBackend()
  t.teardown(() => backend.close())
  const path = join(dir, 'taken.yaml')
  writeFileSync(path, JSON.stringify(vmcpConfig({ raw: backend.url })))
  const flags = ['--config', path, '--port', String(backend.port), '--workers', '2']
  const { code, stderr } = await runGatehouse(['vmcp', 'serve', ...flags])
  t.equal(code, 1)
  t.match(stderr, /EADDRINUSE|in use/)
})

t.test(
  'with Redis, processes share like replicas do, and rate limits count once',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const backend = await startRawBackend()
    t.teardown(() => Promise.all([redis.stop(), backend.close()]))
    const served = await startServed(
      t,
      { raw: backend.url },
      {
        workers: 2,
        more: {
          sessionStorage: { provider: 'redis', address: redis.addr, db: 0, keyPrefix: 'w:' },
          rateLimiting: { shared: { maxTokens: 4, refillPeriod: '1h' } },
        },
      },
    )
    const session = await openSession(served.url, { headers: nextWorker })
    const texts = []
    for (let i = 0; i < 6; i++)
      texts.push((await session.request('tools/call', { name: 'raw_echo', arguments: {} })).text)
    t.equal(texts.filter((text) => text.includes('isError')).length, 2)
    t.match(redis.cli('get', `w:${session.id}`), '"owner"')
  },
)
