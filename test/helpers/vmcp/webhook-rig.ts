/** A virtual server with webhooks, real tokens and a backend of both eras, for tests. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startTokenIssuer } from '../authserver/token-issuer.ts'
import { startFixture } from '../mcp/fixture-server/index.ts'
import { openSession, stateless } from '../mcp/wire.ts'
import type { Ask, Era } from '../decisions/decision-rig.ts'
import { until } from '../redis.ts'
import { bareNames, startTestVmcp } from './vmcp.ts'
import { certificates, type TestWebhook } from './webhook.ts'

type Settings = Record<string, unknown>

/** Settings of a webhook of the test authority. */
export function hook(name: string, { url }: Pick<TestWebhook, 'url'>, more: Settings = {}): Settings {
  return { name, url, caBundlePath: certificates.caFile, ...more }
}

export interface WebhookLine {
  readonly outcome: string
  readonly webhooks?: readonly Record<string, unknown>[]
  readonly metadata: { readonly extra: Record<string, unknown> }
}

export async function startWebhookRig(t: Test, webhooks: Settings, more: Settings = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'webhooks-'))
  const logFile = join(folder, 'audit.log')
  const [issuer, fixture] = await Promise.all([startTokenIssuer(), startFixture({ era: 'both' })])
  const { authz, ...rest } = more
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    {
      aggregation: bareNames('fixture'),
      incomingAuth: { ...issuer.incomingAuth, ...(authz === undefined ? {} : { authz }) },
      audit: { enabled: true, logFile },
      telemetry: { enablePrometheusMetricsPath: true },
      webhooks,
      ...rest,
    },
  )
  t.teardown(async () => {
    await Promise.all([vmcp.close(), fixture.close(), issuer.close()])
    rmSync(folder, { recursive: true })
  })
  const audit = (): WebhookLine[] =>
    readFileSync(logFile, 'utf8')
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as WebhookLine)
      .filter(({ webhooks: told }) => told)
  return {
    vmcp,
    fixture,
    async as(era: Era, subject: string, claims?: Settings): Promise<Ask> {
      const headers = { authorization: `Bearer ${await issuer.token(subject, claims)}` }
      if (era === 'stateless') return (method, params) => stateless(vmcp.url, method, params, { headers })
      const session = await openSession(vmcp.url, { headers })
      return (method, params) => session.request(method, params)
    },
    audit,
    /** Resolves with the lines about webhooks, once there are `count`. Lines are written after the response. */
    async audited(count: number): Promise<WebhookLine[]> {
      await until(() => audit().length >= count)
      return audit()
    },
    metrics: async (): Promise<string> => (await fetch(`${vmcp.origin}/metrics`)).text(),
    status: async (): Promise<string> => (await fetch(`${vmcp.origin}/status`)).text(),
  }
}
