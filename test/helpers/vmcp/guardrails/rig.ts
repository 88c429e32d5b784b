/** A virtual server with guardrails in front of given backends, its audit log and metrics, for tests. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { StartOptions } from '../../../../runtime/vmcp/index.ts'
import { makeLog } from '../../../../runtime/observe/index.ts'
import { openSession, stateless, type StatelessOptions, type WireAnswer } from '../../mcp/wire.ts'
import { until } from '../../redis.ts'
import type { Era } from '../../decisions/decision-rig.ts'
import { type BackendInput, bareNames, startTestVmcp } from '../vmcp.ts'

export interface GuardrailLine {
  readonly outcome: string
  readonly guardrails?: readonly Record<string, unknown>[]
  readonly metadata: { readonly extra: Record<string, unknown> }
}

type Caller = (method: string, params?: Record<string, unknown>) => Promise<WireAnswer>

export async function startGuardrailRig(
  t: Test,
  backends: Readonly<Record<string, string | BackendInput>>,
  guardrails: unknown,
  more: Readonly<Record<string, unknown>> = {},
  options: Pick<StartOptions, 'recorder' | 'advertise'> = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'guardrails-'))
  const logFile = join(folder, 'audit.log')
  const log: string[] = []
  const vmcp = await startTestVmcp(
    backends,
    {
      aggregation: bareNames(...Object.keys(backends)),
      audit: {
        enabled: true,
        logFile,
        includeRequestData: true,
        includeResponseData: true,
        policyInputs: 'all',
      },
      telemetry: { enablePrometheusMetricsPath: true },
      ...(guardrails === undefined ? {} : { guardrails }),
      ...more,
    },
    { ...options, log: makeLog({ level: 'debug', destination: { write: (line) => void log.push(line) } }) },
  )
  t.teardown(async () => {
    await vmcp.close()
    rmSync(folder, { recursive: true })
  })
  /** Lines with findings. */
  const audit = (): GuardrailLine[] =>
    readFileSync(logFile, 'utf8')
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as GuardrailLine)
      .filter(({ guardrails: told }) => told)
  return {
    vmcp,
    async as(era: Era, options: StatelessOptions = {}): Promise<Caller> {
      if (era === 'stateless') return (method, params) => stateless(vmcp.url, method, params, options)
      const session = await openSession(vmcp.url, {
        ...(options.capabilities === undefined ? {} : { capabilities: options.capabilities }),
      })
      return (method, params) => session.request(method, params)
    },
    log: () => log.join(''),
    auditText: () => readFileSync(logFile, 'utf8'),
    /** Resolves with the lines with findings, once there are `count`. Lines are written after the response. */
    async audited(count: number): Promise<GuardrailLine[]> {
      await until(() => audit().length >= count)
      return audit()
    },
    /** Resolves with the whole audit log, once it contains these lines. */
    async auditTextWith(...texts: readonly string[]): Promise<string> {
      await until(() => texts.every((text) => readFileSync(logFile, 'utf8').includes(text)))
      return readFileSync(logFile, 'utf8')
    },
    metrics: async (): Promise<string> => (await fetch(`${vmcp.origin}/metrics`)).text(),
    status: async (): Promise<string> => (await fetch(`${vmcp.origin}/status`)).text(),
  }
}
