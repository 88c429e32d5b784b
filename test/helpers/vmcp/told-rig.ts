/** A running virtual server, and what it tells of a failure: in its log, `/status`, metrics and report to the cluster. */
import type { Test } from 'tap'
import { vmcpEnvironment } from '../../../runtime/config/index.ts'
import { makeFetch } from '../../../runtime/net/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import type { StartOptions, VmcpServer } from '../../../runtime/vmcp/index.ts'
import { type RawBackendOptions, startRawBackend } from '../mcp/raw-backend.ts'
import { openSession } from '../mcp/wire.ts'
import { until } from '../redis.ts'
import { startTestVmcp } from './vmcp.ts'

type Line = Readonly<Record<string, unknown>>

interface Told {
  readonly lines: readonly Line[]
  readonly status: { problem_details: Line[]; problems: string[]; backends: Line[] }
  readonly metrics: string
  readonly report: { problems: Line[]; backends: Line[] }
}

export interface Rig {
  readonly vmcp: VmcpServer
  /** A call by a client of its own; what comes of it is not looked at. */
  call(name: string): Promise<void>
  told(): Promise<Told>
}

const env = {
  [vmcpEnvironment.namespace]: 'ns',
  [vmcpEnvironment.reportConfigMap]: 'report',
  [vmcpEnvironment.podName]: 'pod',
}

export const quick = {
  failureHandling: {
    healthCheckInterval: '200ms',
    healthCheckTimeout: '150ms',
    unhealthyThreshold: 2,
    partialFailureMode: 'best_effort',
  },
}

export async function rig(
  t: Test,
  backends: Parameters<typeof startTestVmcp>[0],
  more: Readonly<Record<string, unknown>> = {},
  options: StartOptions = {},
): Promise<Rig> {
  const lines: Line[] = []
  const log = makeLog({ destination: { write: (line) => void lines.push(JSON.parse(line) as Line) } })
  let report = '{"problems":[],"backends":[]}'
  const answer = async (_url: string | URL, init?: { body?: unknown }): Promise<Response> => {
    const { data } = JSON.parse(String(init?.body)) as { data: Record<string, string | null> }
    report = data['pod.json'] ?? report
    return Response.json({ data })
  }
  const closing = makeFetch()
  const vmcp = await startTestVmcp(
    backends,
    { telemetry: { enablePrometheusMetricsPath: true }, operational: quick, ...more },
    {
      log,
      env,
      clusterApi: {
        baseUrl: 'http://cluster',
        token: () => 'pod-token',
        fetch: Object.assign(answer as unknown as typeof closing, { close: () => closing.close() }),
      },
      ...options,
    },
  )
  t.teardown(() => vmcp.close())
  const get = async (path: string) => (await fetch(`${vmcp.origin}${path}`)).text()
  return {
    vmcp,
    async call(name) {
      const session = await openSession(vmcp.url)
      await session.request('tools/list')
      await session.request('tools/call', { name, arguments: {} })
    },
    told: async () => ({
      lines,
      status: JSON.parse(await get('/status')) as Told['status'],
      metrics: await get('/metrics'),
      report: JSON.parse(report) as Told['report'],
    }),
  }
}

/** A server that behaves well, unless the options say otherwise. */
export async function backend(t: Test, options: RawBackendOptions = {}): Promise<string> {
  const raw = await startRawBackend(options)
  t.teardown(() => raw.close())
  return raw.url
}

interface Expected {
  /** Type of the event. */
  readonly type: string
  readonly backend?: string
  readonly message?: RegExp
  /** A line of the metrics beside those of every event. */
  readonly metric?: string
  /** Health that `/status` and the report give for the backend. */
  readonly health?: readonly [status: string, report: string]
}

/** A lasting problem: all four tell it, with a fix; since when is the same in status and report. */
export async function toldEverywhere(t: Test, { told }: Rig, expected: Expected): Promise<void> {
  const { type, backend: name, message = /./, metric, health } = expected
  const isIt = (line: Line): boolean =>
    line['type'] === type && (name === undefined || line['backend'] === name)
  await until(async () => {
    const { status, report } = await told()
    return status.problem_details.some(isIt) && report.problems.some(isIt)
  })
  const { lines, status, metrics, report } = await told()
  const logged = lines.filter(
    (line) => line['event'] === type && (name === undefined || line['backend'] === name),
  )
  t.ok(logged.length >= 1 && logged.length <= 5, `log: ${logged.length} lines`)
  const problem = status.problem_details.find(isIt)
  t.match(problem, { message, fix: /\w{3}/, since: /^\d{4}-/ }, 'status')
  t.ok(status.problems.includes(String(problem?.['message'])), 'the list of messages has it, too')
  t.match(metrics, new RegExp(`gatehouse_problems\\{type="${type}"\\} [1-9]`), 'metrics')
  t.match(metrics, `gatehouse_events_total{type="${type}"}`)
  if (metric !== undefined) t.match(metrics, metric)
  const reported = report.problems.find(isIt)
  t.equal(reported?.['message'], problem?.['message'], 'report')
  t.equal(String(reported?.['since']).slice(0, 19), String(problem?.['since']).slice(0, 19))
  if (health) {
    t.equal(status.backends.find((one) => one['name'] === name)?.['health'], health[0])
    t.equal(report.backends.find((one) => one['name'] === name)?.['status'], health[1])
  }
}

/** Something that happens call by call: log and metrics tell it, and nothing is said to be wrong with the server. */
export async function toldAsItComes(
  t: Test,
  { told }: Rig,
  type: string,
  fields: Line,
  metric: string,
): Promise<void> {
  await until(async () => (await told()).lines.some((line) => line['event'] === type))
  const { lines, status, metrics, report } = await told()
  const logged = lines.filter((line) => line['event'] === type)
  t.equal(logged.length, 1, 'one line, however many calls')
  t.match(logged[0], fields)
  t.match(metrics, `gatehouse_events_total{type="${type}"}`)
  t.match(metrics, metric)
  t.same(status.problem_details, [])
  t.same(report.problems, [])
}
