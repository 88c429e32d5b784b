/** A virtual server with a decision point, real tokens, and a backend of each era. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startTokenIssuer } from '../authserver/token-issuer.ts'
import { startFixture } from '../mcp/fixture-server/index.ts'
import { openSession, stateless, type WireAnswer } from '../mcp/wire.ts'
import { bareNames, startTestVmcp } from '../vmcp/vmcp.ts'

export type Era = 'session' | 'stateless'
export const eras: readonly Era[] = ['session', 'stateless']
export type Ask = (method: string, params?: Record<string, unknown>) => Promise<WireAnswer>

export interface AuditLine {
  readonly outcome: string
  readonly policy?: Record<string, unknown>
}

export async function startDecisionRig(
  t: Test,
  settings: Record<string, unknown>,
  type: 'httpv1' | 'authzenv1' = 'httpv1',
) {
  const logFile = join(t.testdir({}), 'audit.log')
  const [issuer, fixture] = await Promise.all([startTokenIssuer(), startFixture({ era: 'both' })])
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    {
      aggregation: bareNames('fixture'),
      incomingAuth: { ...issuer.incomingAuth, authz: { type, [type]: settings } },
      audit: { enabled: true, logFile },
      telemetry: { enablePrometheusMetricsPath: true },
    },
  )
  const close = async (): Promise<void> =>
    void (await Promise.all([vmcp.close(), fixture.close(), issuer.close()]))
  t.teardown(close)
  return {
    url: vmcp.url,
    origin: vmcp.origin,
    async as(era: Era, subject: string, claims?: Record<string, unknown>): Promise<Ask> {
      const headers = { authorization: `Bearer ${await issuer.token(subject, claims)}` }
      if (era === 'stateless') return (method, params) => stateless(vmcp.url, method, params, { headers })
      const session = await openSession(vmcp.url, { headers })
      return (method, params) => session.request(method, params)
    },
    /** Log lines about decisions. */
    audit: (): AuditLine[] =>
      readFileSync(logFile, 'utf8')
        .trim()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as AuditLine)
        .filter(({ policy }) => policy),
    metrics: async (): Promise<string> => (await fetch(`${vmcp.origin}/metrics`)).text(),
    status: async (): Promise<string> => (await fetch(`${vmcp.origin}/status`)).text(),
  }
}

export const toolsIn = ({ response }: WireAnswer): string[] =>
  ((response?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
