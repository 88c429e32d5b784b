/**
 * Runs a built virtual server for three hours: clients of all eras that connect and leave, backends that die and
 * change, untrusted clients that send invalid input, and plain calls that keep it at 60 % of its capacity. At the end
 * it reports unexpected failures and whether memory is flat. The graph shows the p99 of the plain calls per minute.
 *
 * `make soak`, or `node test/bench/soak.ts --minutes 60 --load 0.6 --out DIR --program dist/gatehouse.js --graph FILE`;
 * `--load 0` omits the plain calls, `--rate` is the number of operations of the other clients per second. The program
 * is copied first, so that a later build does not disturb the run. DIR receives samples.csv, failures.log, vmcp.log,
 * soak.svg and judgment.md. The exit code is 1 when an operation failed unexpectedly, when memory grew faster than the
 * limits (MB per hour over the second half of the run), or when the server did not exit normally. `--snapshots` writes
 * heap snapshots at a quarter of the run and at the end.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { drawGraph } from './soak/graph.ts'
import { check } from './soak/check.ts'
import { Ledger } from './soak/ledger.ts'
import {
  type BackendProcess,
  type LoadProcess,
  startBackend,
  startLoad,
  startServer,
} from './soak/processes.ts'
import { Sampler } from './soak/sampler.ts'
import { sessionClient } from './soak/session-client.ts'
import { statelessClient } from './soak/stateless-client.ts'
import { makeTrouble, writeConfig } from './soak/trouble.ts'
import type { Shaky, Soak } from './soak/types.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '180' },
    load: { type: 'string', default: '0.6' },
    rate: { type: 'string', default: '90' },
    out: { type: 'string' },
    program: { type: 'string', default: join(import.meta.dirname, '../../dist/gatehouse.js') },
    graph: { type: 'string' },
    'max-rss-slope': { type: 'string', default: '40' },
    'max-live-slope': { type: 'string', default: '4' },
    snapshots: { type: 'boolean', default: false },
  },
})

const SAMPLE_MS = 10_000
/** Short, so that abandoned clients and their state on the server reach a steady number in ten minutes. */
const SESSION_TTL = '2m'
const SESSION_CLIENTS = 16
const STATELESS_CLIENTS = 8
/** Minimum minutes for a meaningful slope. */
const MIN_MINUTES_TO_JUDGE = 30

const minutes = Number(values.minutes)
const out = resolve(values.out ?? mkdtempSync(join(tmpdir(), 'gatehouse-soak-')))
mkdirSync(out, { recursive: true })

function say(text: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`)
}

/** Copies the program with all its files. */
function copyProgram(): string {
  const folder = join(out, 'program')
  rmSync(folder, { recursive: true, force: true })
  cpSync(dirname(values.program), folder, { recursive: true })
  return join(folder, basename(values.program))
}

function configText(backends: Readonly<Record<string, string>>): string {
  return JSON.stringify({
    name: 'soak',
    groupRef: 'soak',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
    aggregation: {
      conflictResolution: 'prefix',
      conflictResolutionConfig: { prefixFormat: '{workload}_' },
    },
    operational: {
      timeouts: { default: '5s' },
      failureHandling: {
        healthCheckInterval: '5s',
        healthCheckTimeout: '2s',
        unhealthyThreshold: 2,
        partialFailureMode: 'best_effort',
        circuitBreaker: { enabled: true, failureThreshold: 10, timeout: '5s' },
      },
    },
    telemetry: { metricsEnabled: true, enablePrometheusMetricsPath: true },
    audit: { enabled: true, logFile: join(out, 'audit.log') },
    backends: Object.entries(backends).map(([name, url]) => ({
      name,
      url,
      transport: url.endsWith('/sse') ? 'sse' : 'streamable-http',
    })),
  })
}

async function main(): Promise<number> {
  say(`${minutes} minutes; everything goes to ${out}`)
  const ledger = new Ledger(join(out, 'failures.log'))
  writeFileSync(join(out, 'failures.log'), '')
  const processes = new Set<BackendProcess>()
  const start = async (...args: string[]): Promise<BackendProcess> => {
    const started = await startBackend(...args)
    processes.add(started)
    return { ...started, kill: () => started.kill().then(() => void processes.delete(started)) }
  }
  const steady = await start('steady')
  // Reserves ports: a killed backend restarts at its old address.
  const first = { gamma: await start('fixture'), epsilon: await start('fixture') }
  const urls = { gamma: first.gamma.urls['url'] ?? '', epsilon: first.epsilon.urls['sseUrl'] ?? '' }
  await Promise.all([first.gamma.kill(), first.epsilon.kill()])
  const stay = { ...steady.urls, gamma: urls.gamma }
  const config = ({ withEpsilon }: { readonly withEpsilon: boolean }): string =>
    configText(withEpsilon ? { ...stay, epsilon: urls.epsilon } : stay)
  const configFile = join(out, 'vmcp.yaml')
  await writeConfig(configFile, config({ withEpsilon: false }))

  const server = await startServer({
    program: copyProgram(),
    configFile,
    logFile: join(out, 'vmcp.log'),
    sessionTtl: SESSION_TTL,
  })
  const loads: LoadProcess[] = []
  const pids = (): number[] => [...processes, ...loads].map(({ pid }) => pid)
  endWithAll(() => [server.pid, ...pids()])
  const sampler = new Sampler(server, ledger, join(out, 'samples.csv'), pids)
  if (Number(values.load) > 0)
    loads.push(await keepBusy(`${server.origin}/mcp`, Number(values.load), ledger, sampler))
  const until = Date.now() + minutes * 60_000
  const away = new Set<Shaky>(['gamma', 'epsilon'])
  const heard = new Map<string, number>()
  const meanPauseMs = ((SESSION_CLIENTS + STATELESS_CLIENTS) * 1_000) / Number(values.rate)
  const soak: Soak = {
    url: `${server.origin}/mcp`,
    origin: server.origin,
    ledger,
    over: () => Date.now() >= until || server.exit() !== undefined,
    pace: () => setTimeout(-Math.log(1 - Math.random()) * meanPauseMs),
    // At the end, backends stop while the last calls run.
    shaky: (backend) => away.has(backend) || Date.now() >= until,
    heard(messages) {
      for (const { method } of messages)
        if (method !== undefined) heard.set(method, (heard.get(method) ?? 0) + 1)
    },
  }
  const port = (url: string): string => new URL(url).port
  const work = [
    ...makeTrouble(soak, {
      configFile,
      config,
      startGamma: () => start('fixture', port(urls.gamma)),
      startEpsilon: () => start('fixture', port(urls.epsilon)),
      setShaky: (backend, shaky) => void (shaky ? away.add(backend) : away.delete(backend)),
    }),
    ...Array.from({ length: SESSION_CLIENTS }, () => sessionClient(soak)),
    ...Array.from({ length: STATELESS_CLIENTS }, () => statelessClient(soak)),
  ]
  const snapshots = values.snapshots ? [0.25, 0.98] : []
  try {
    for (let next = Date.now() + SAMPLE_MS; !soak.over(); next += SAMPLE_MS) {
      await setTimeout(Math.max(0, Math.min(next, until) - Date.now()))
      const sample = await sampler.take()
      const share = 1 - (until - Date.now()) / (minutes * 60_000)
      if (snapshots[0] !== undefined && share >= snapshots[0]) {
        const file = join(out, `at-${String(snapshots.shift()).slice(2)}.heapsnapshot`)
        await server.snapshot(file)
        say(`wrote ${file}`)
      }
      if (sampler.samples.length % 6 === 0) {
        // Truncates the log like copy-and-truncate log rotation, because it would reach 14 GB after three hours.
        truncateSync(join(out, 'audit.log'))
        write(ledger, sampler, heard, () => 'the soak is still running')
        say(
          `${(sample.seconds / 60).toFixed(0)} min, RSS ${sample.rssMb.toFixed(0)} MB, live heap ${sample.liveHeapMb?.toFixed(1)} MB, ` +
            `${sample.sessions} sessions, ${sample.sockets} sockets, CPU ${sample.cpuServer.toFixed(0)} + ${sample.cpuOthers.toFixed(0)} %, ` +
            `${sample.operations} operations, ${sample.failures} failures` +
            latencyOf(sampler),
        )
      }
    }
    await Promise.all(loads.map((each) => each.kill()))
    await Promise.race([Promise.all(work), setTimeout(60_000)])
  } finally {
    await Promise.all([...loads, ...processes].map((each) => each.kill()))
  }
  const code = await server.stop()
  return report(ledger, sampler, heard, code)
}

/** Calls a tool of the backend that never stops, to keep the server at a share of its capacity. */
async function keepBusy(url: string, share: number, ledger: Ledger, sampler: Sampler): Promise<LoadProcess> {
  say('measuring how many calls the server takes')
  const load = await startLoad(url, 'alpha_echo', share, {
    begins: (rate) => say(`${rate.toFixed(0)} plain calls a second from now on`),
    minuteOver(minute) {
      const { calls: done, refused: due, slowestMs } = minute
      const failed = Object.values(minute.failed).reduce((sum, count) => sum + count, 0)
      ledger.add('plain calls', { done, due, failed, slowestMs }, JSON.stringify(minute.failed))
      sampler.minuteOver(minute)
    },
  })
  say(`${load.capacity.toFixed(0)} calls a second without the others`)
  return load
}

function latencyOf({ samples }: Sampler): string {
  const last = samples.findLast(({ p99Ms }) => p99Ms !== undefined)
  return last ? `, plain calls p50 ${last.p50Ms?.toFixed(1)} ms, p99 ${last.p99Ms?.toFixed(1)} ms` : ''
}

/** Stopping the soak also stops all its processes. */
function endWithAll(pids: () => readonly number[]): void {
  const end = (): never => {
    for (const pid of pids()) process.kill(pid, 'SIGKILL')
    process.exit(130)
  }
  process.once('SIGINT', end).once('SIGTERM', end)
}

/** Writes the graph and the judgment for the samples so far. Returns whether memory is flat, and the text. */
function write(
  ledger: Ledger,
  sampler: Sampler,
  heard: ReadonlyMap<string, number>,
  verdict: (flat: boolean) => string,
): { flat: boolean; text: string } {
  const { samples } = sampler
  const { flat, text } = check(samples, {
    rss: Number(values['max-rss-slope']),
    live: Number(values['max-live-slope']),
  })
  const passed = Math.round((samples.at(-1)?.seconds ?? 0) / 60)
  const graph = drawGraph(samples, `vMCP under churn: ${ledger.operations} operations in ${passed} minutes`)
  for (const file of [join(out, 'soak.svg'), values.graph]) if (file !== undefined) writeFileSync(file, graph)
  const notifications = [...heard].map(([method, count]) => `${method} ${count}`).join(', ')
  const judgment = `${verdict(flat)}\n\n${text}\n\n${ledger.table()}\n\nHeard on open streams: ${notifications}\n`
  writeFileSync(join(out, 'judgment.md'), judgment)
  return { flat, text: judgment }
}

function report(
  ledger: Ledger,
  sampler: Sampler,
  heard: ReadonlyMap<string, number>,
  exitCode: number | null,
): number {
  const checked = minutes >= MIN_MINUTES_TO_JUDGE
  const deaf = !heard.has('notifications/tools/list_changed')
  const { flat, text } = write(ledger, sampler, heard, (flat) =>
    [
      ledger.failures === 0 ? 'nothing failed that should not' : `${ledger.failures} operations failed`,
      checked ? (flat ? 'memory is flat' : 'MEMORY GROWS') : 'too short to check memory',
      ...(deaf ? ['no client ever heard of a changed list'] : []),
      ...(exitCode === 0 ? [] : [`the server ended with code ${exitCode}`]),
    ].join('; '),
  )
  process.stdout.write(text)
  return ledger.failures === 0 && (flat || !checked) && !deaf && exitCode === 0 ? 0 : 1
}

process.exit(await main())
