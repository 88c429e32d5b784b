/** A try in the console that a quota or a rate limit rejects is recorded as denied, in both eras. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { startTestConsole } from '../../helpers/console/console.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { missingRedis, startRedis, until } from '../../helpers/redis.ts'
import { makeCaller } from '../../../runtime/net/index.ts'
import { daily, startQuotaRig } from '../../helpers/vmcp/quota-rig.ts'

const eras = ['2025-11-25', '2026-07-28'] as const

async function rig(t: import('tap').Test, settings: Readonly<Record<string, unknown>>) {
  const backend = await startRawBackend({
    tools: () => ['{"name":"echo","inputSchema":{"type":"object"}}'],
    responses: { 'tools/call': () => textResult('done') },
  })
  const console = await startTestConsole({ raw: backend.url }, settings)
  t.teardown(() => Promise.all([console.close(), backend.close()]))
  return {
    async attempt(era: string): Promise<Record<string, unknown>> {
      const { json } = await console.api('tries', {
        method: 'POST',
        body: { name: 'raw_echo', arguments: '{}', era },
      })
      const events = await console.events(`tries/${String(json['id'])}/events`)
      return (await events.next('done')).data
    },
    latest: async (): Promise<unknown> => ((await console.api('calls')).json['items'] as unknown[])[0],
  }
}

for (const era of eras)
  t.test(`era ${era}: rejected by a quota`, async (t) => {
    const logFile = join(mkdtempSync(join(tmpdir(), 'tries-')), 'audit.log')
    t.teardown(() => rmSync(dirname(logFile), { recursive: true }))
    const lines = (): { type: string; quotas?: unknown; guardrails?: unknown }[] =>
      readFileSync(logFile, 'utf8')
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
        .filter(({ type }) => type === 'mcp_tool_call')
    const { attempt, latest } = await rig(t, {
      quotas: [daily({ per: 'server', limit: 1 })],
      guardrails: { redact: [{ name: 'done', expressions: ['done'] }] },
      audit: { enabled: true, logFile },
    })
    t.match(await attempt(era), { outcome: 'success' })
    t.match(await latest(), { outcome: 'success', denied: undefined })
    const done = await attempt(era)
    t.match(done, { outcome: 'denied' })
    t.match(JSON.stringify(done), /Quota exceeded: daily has 0 of 1 calls left until /)
    t.match(await latest(), { name: 'raw_echo', outcome: 'denied', denied: { by: 'quota' } })
    await until(() => lines().length === 2)
    t.match(lines(), [
      { quotas: undefined, guardrails: [{ rule: 'done', outcome: 'masked', count: 1 }] },
      { quotas: [{ name: 'daily', enforced: true }], guardrails: undefined },
    ])
  })

for (const era of ['session', 'stateless'] as const)
  t.test(`era ${era}: the backend of a try is reported once`, async (t) => {
    const { vmcp } = await startQuotaRig(t, { quotas: [daily({ per: 'server' })] })
    const routed: string[] = []
    await vmcp.view.call({
      ...{ tool: 'echo', era, signal: new AbortController().signal, toolArguments: Buffer.from('{}') },
      caller: makeCaller({ issuer: 'https://issuer.example', subject: 'ada', claims: {} }),
      ask: () => Promise.reject(new Error('unexpected question')),
      progress() {},
      log() {},
      decided() {},
      routed: (name) => void routed.push(name),
    })
    t.same(routed, ['raw'])
  })

t.test('rejected by a rate limit', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  for (const era of eras) {
    const { attempt, latest } = await rig(t, {
      sessionStorage: { provider: 'redis', address: redis.addr, keyPrefix: `tries-${era}:` },
      rateLimiting: { shared: { maxTokens: 1, refillPeriod: '24h' } },
    })
    // A call is not counted when a busy machine delays a response of Redis.
    await until(async () => (await attempt(era))['outcome'] === 'denied')
    t.match(await latest(), { outcome: 'denied', denied: { by: 'rate_limit' } }, era)
  }
})
