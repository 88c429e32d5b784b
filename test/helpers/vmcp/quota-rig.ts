/** A virtual server with quotas, real tokens and a manual clock, in front of a backend with responses from the test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { StartOptions } from '../../../runtime/vmcp/index.ts'
import { startTokenIssuer } from '../authserver/token-issuer.ts'
import { type RawBackend, type RawBackendOptions, startRawBackend, textResult } from '../mcp/raw-backend.ts'
import { openSession, stateless, type WireAnswer } from '../mcp/wire.ts'
import { until } from '../redis.ts'
import type { Era } from '../decisions/decision-rig.ts'
import { bareNames, startTestVmcp, vmcpConfig } from './vmcp.ts'

type Settings = Readonly<Record<string, unknown>>

export const quotaEras = ['session', 'stateless'] as const

/** A quota of two calls a day per user. */
export function daily(more: Settings = {}): Settings {
  return { name: 'daily', per: 'user', window: 'day', limit: 2, ...more }
}

/** A manual clock. Moving it runs the timers that are due. */
function steppedClock(start: string) {
  let now = Date.parse(start)
  const waiting = new Set<{ readonly at: number; readonly work: () => void }>()
  return {
    now: () => now,
    after(ms: number, work: () => void) {
      const entry = { at: now + ms, work }
      waiting.add(entry)
      return () => void waiting.delete(entry)
    },
    moveTo(time: string) {
      now = Date.parse(time)
      for (const entry of [...waiting].filter(({ at }) => at <= now)) {
        waiting.delete(entry)
        entry.work()
      }
    },
  }
}

export interface QuotaCaller {
  call(name?: string, args?: Settings): Promise<WireAnswer>
  request(method: string, params: Settings): Promise<WireAnswer>
}

export interface AuditLine {
  readonly outcome: string
  readonly quotas?: readonly { readonly name: string; readonly enforced: boolean }[]
  readonly metadata: { readonly extra: Settings }
}

const tool = (name: string) => `{"name":"${name}","inputSchema":{"type":"object"}}`

export interface QuotaRigOptions extends StartOptions {
  readonly backend?: RawBackendOptions
  /** Names of the backend's tools. */
  readonly tools?: readonly string[]
  /** RFC 3339 time. Default: the middle of a day. */
  readonly start?: string
}

export async function startQuotaRig(t: Test, settings: Settings, options: QuotaRigOptions = {}) {
  const { backend: behaviour, tools = ['echo', 'costly'], start = '2026-11-23T10:00:00Z', ...more } = options
  const folder = mkdtempSync(join(tmpdir(), 'quotas-'))
  const logFile = join(folder, 'audit.log')
  const issuer = await startTokenIssuer()
  const backend: RawBackend = await startRawBackend({
    tools: () => tools.map(tool),
    responses: { 'tools/call': () => textResult('done') },
    ...behaviour,
  })
  const clock = steppedClock(start)
  const configOf = ({ authz, ...own }: Settings) => ({
    aggregation: bareNames('raw'),
    incomingAuth: { ...issuer.incomingAuth, ...(authz === undefined ? {} : { authz }) },
    audit: { enabled: true, logFile },
    telemetry: { enablePrometheusMetricsPath: true },
    ...own,
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, configOf(settings), {
    clock,
    env: { VMCP_NAMESPACE: 'team' },
    ...more,
  })
  t.teardown(async () => {
    await Promise.all([vmcp.close(), backend.close(), issuer.close()])
    rmSync(folder, { recursive: true })
  })
  const rig = {
    vmcp,
    backend,
    clock,
    issuer,
    calls: () => backend.requests.filter(({ method }) => method === 'tools/call').length,
    reload: (changed: Settings) => vmcp.reload(vmcpConfig({ raw: backend.url }, configOf(changed))),
    async as(era: Era, subject: string, claims?: Record<string, unknown>): Promise<QuotaCaller> {
      const headers = { authorization: `Bearer ${await issuer.token(subject, claims)}` }
      const session = era === 'session' ? await openSession(vmcp.url, { headers }) : undefined
      const request: QuotaCaller['request'] = (method, params) =>
        session ? session.request(method, params) : stateless(vmcp.url, method, params, { headers })
      return { request, call: (name = 'echo', args = {}) => request('tools/call', { name, arguments: args }) }
    },
    audit: (): AuditLine[] =>
      readFileSync(logFile, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as AuditLine),
    /**
     * Resolves with the quotas in the audit log once there are `count` lines, because lines are written after the
     * response.
     */
    async audited(count: number): Promise<NonNullable<AuditLine['quotas']>[]> {
      const found = () => rig.audit().flatMap(({ quotas }) => (quotas ? [quotas] : []))
      await until(() => found().length >= count)
      return found()
    },
    metrics: async (): Promise<string> => (await fetch(`${vmcp.origin}/metrics`)).text(),
    status: async (): Promise<string> => (await fetch(`${vmcp.origin}/status`)).text(),
  }
  return rig
}

/** Returns the data of a quota error in either era, or undefined for any other response. */
export function refusalOf({ response }: WireAnswer): Record<string, unknown> | undefined {
  const structured = response?.result?.['structuredContent'] as
    | { code?: number; data?: Record<string, unknown> }
    | undefined
  const data = response?.error?.code === 429 ? response.error.data : structured?.data
  return data && 'quota' in data ? data : undefined
}

/** Returns the remaining quota in a result, from `gatehouse.dev/quota`. */
export function leftIn({ response }: WireAnswer): unknown {
  return (response?.result?.['_meta'] as Record<string, unknown> | undefined)?.['gatehouse.dev/quota']
}
