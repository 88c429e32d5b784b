/**
 * Records the figures that have an aim, as each benchmark measures them, and prints the table at the end of `make
 * bench`. The table omits figures that a run did not measure. docs/evidence/performance.md has the whole table.
 */
import { type Cell, table } from './vmcp/table.ts'

interface Aim {
  readonly figure: string
  /** Value of the program that was measured first, on another machine of this kind. Undefined: not measured. */
  readonly before?: string
  readonly aim: number
  /** Higher is better; otherwise lower is. */
  readonly atLeast?: true
  readonly unit?: string
  /** Benchmark of the figure: arguments of `node test/bench/main.ts`. */
  readonly command: string
}

const aims = {
  vmcpShare: {
    figure: 'vMCP tools/call, share of direct, JSON, one core',
    before: '0.30 to 0.34',
    aim: 0.5,
    atLeast: true,
    command: 'vmcp:throughput',
  },
  vmcpToProxy: {
    figure: "vMCP tools/call, CPU against our own proxy's",
    before: '1.8 ×',
    aim: 1.3,
    unit: '×',
    command: 'vmcp:throughput',
  },
  eventsToJson: {
    figure: 'vMCP tools/call, CPU of event streams against JSON',
    before: '1.35 ×',
    aim: 1.1,
    unit: '×',
    command: 'vmcp:throughput',
  },
  proxyPlain: {
    figure: 'proxy, CPU against nginx, no request log',
    before: '2.7 ×',
    aim: 2,
    unit: '×',
    command: 'proxy:one-core',
  },
  proxyJwt: {
    figure: 'proxy, CPU against nginx, JWT known, request log',
    before: '3.9 ×',
    aim: 2.3,
    unit: '×',
    command: 'proxy:one-core',
  },
  large1: {
    figure: '1 MB results, one at a time, share of direct',
    before: '0.25',
    aim: 0.7,
    atLeast: true,
    command: 'vmcp:large',
  },
  large4: {
    figure: '1 MB results, four at a time, share of direct',
    before: '0.35',
    aim: 0.7,
    atLeast: true,
    command: 'vmcp:large',
  },
  session500: {
    figure: 'added p99 at 500 calls/s, sessions',
    before: '1.5 ms',
    aim: 1,
    unit: 'ms',
    command: 'vmcp:rates',
  },
  session2000: {
    figure: 'added p99 at 2,000 calls/s, sessions',
    before: '12 ms',
    aim: 3,
    unit: 'ms',
    command: 'vmcp:rates',
  },
  stateless500: {
    figure: 'added p99 at 500 calls/s, stateless',
    before: '3 ms',
    aim: 1,
    unit: 'ms',
    command: 'vmcp:rates',
  },
  stateless2000: {
    figure: 'added p99 at 2,000 calls/s, stateless',
    before: '14 ms',
    aim: 3,
    unit: 'ms',
    command: 'vmcp:rates',
  },
  collection: {
    figure: 'garbage collection, share of the CPU of a call',
    before: '10 %',
    aim: 4,
    unit: '%',
    command: 'vmcp:throughput',
  },
  told: {
    figure: 'event stream and rings of the console, share of the CPU of a call',
    aim: 3,
    unit: '%',
    command: 'vmcp:throughput vmcp:told',
  },
  dpopCheck: {
    figure: 'DPoP check of a known token, CPU, in signature checks',
    aim: 1.5,
    unit: '×',
    command: 'authserver',
  },
  replay: {
    figure: 'replay of 10,000 audit lines under 50 policies, CPU',
    aim: 10,
    unit: 's',
    command: 'policy',
  },
  pinning: {
    figure: 'pinning, everything as approved, added CPU of a call',
    aim: 5,
    unit: '%',
    command: 'pinning',
  },
  shadowPolicies: {
    figure: 'ten shadow policies, added CPU of a call',
    aim: 5,
    unit: '%',
    command: 'pinning',
  },
  pinningAndShadow: {
    figure: 'pinning and ten shadow policies, added CPU of a call',
    aim: 5,
    unit: '%',
    command: 'pinning',
  },
  startCpu: {
    figure: '`vmcp serve` to the first complete tools/list, 3 backends, CPU',
    before: '800 ms',
    aim: 200,
    unit: 'ms',
    command: 'programs',
  },
  version: { figure: '`gatehouse --version`', before: '400 ms', aim: 150, unit: 'ms', command: 'programs' },
  runtimeSize: {
    figure: 'scripts of the runtime (`dist/runtime`)',
    before: '10.9 MB',
    aim: 4,
    unit: 'MB',
    command: 'programs',
  },
  hooksSize: {
    figure: 'scripts of the hooks (`dist/hooks`)',
    before: '11.5 MB',
    aim: 4,
    unit: 'MB',
    command: 'programs',
  },
  proxyIdle: { figure: 'RSS idle, proxy', before: '117 MB', aim: 70, unit: 'MB', command: 'programs' },
  vmcpIdle: {
    figure: 'RSS idle, vMCP with 3 backends',
    before: '154 MB',
    aim: 80,
    unit: 'MB',
    command: 'programs',
  },
  hooksIdle: { figure: 'RSS idle, hooks', before: '109 MB', aim: 75, unit: 'MB', command: 'programs' },
  vmcpLoaded: {
    figure: 'RSS under full load, vMCP',
    before: '342 MB',
    aim: 160,
    unit: 'MB',
    command: 'programs',
  },
  proxyLoaded: {
    figure: 'RSS under full load, proxy',
    before: '299 MB',
    aim: 130,
    unit: 'MB',
    command: 'programs',
  },
  idleSession: {
    figure: 'idle session after one call, RSS',
    before: '22 to 57 KB',
    aim: 15,
    unit: 'KB',
    command: 'vmcp:idle',
  },
  openStream: {
    figure: 'open event stream of the proxy, RSS',
    before: '35 KB',
    aim: 15,
    unit: 'KB',
    command: 'proxy:stream-memory',
  },
  login: {
    figure: 'login, CPU of one signature',
    before: '21.6 ×',
    aim: 12,
    unit: '×',
    command: 'authserver',
  },
  refresh: {
    figure: 'refresh, CPU of one signature',
    before: '3.4 ×',
    aim: 2.5,
    unit: '×',
    command: 'authserver',
  },
  clientSecret: {
    figure: 'client credentials with a secret, CPU of one signature',
    aim: 1.5,
    unit: '×',
    command: 'authserver',
  },
  clientKey: {
    figure: 'client credentials with a key, CPU of one signature',
    aim: 3,
    unit: '×',
    command: 'authserver',
  },
  newToken: {
    figure: 'new token, CPU of one signature',
    before: '2.1 ×',
    aim: 1.5,
    unit: '×',
    command: 'authserver',
  },
  sync50: {
    figure: 'hooks, sync of 50 backends, p99',
    before: '2.7 ms',
    aim: 1.5,
    unit: 'ms',
    command: 'hooks',
  },
  syncMemory: {
    figure: 'hooks, memory over many syncs of 500 backends, left by each',
    aim: 100,
    unit: 'bytes',
    command: 'hooks:memory',
  },
  coldList: {
    figure: 'cold tools/list of 20 × 200 tools',
    before: '326 ms',
    aim: 120,
    unit: 'ms',
    command: 'vmcp:lists',
  },
} as const satisfies Readonly<Record<string, Aim>>

export type AimName = keyof typeof aims

const measured = new Map<AimName, number>()

/** Records a measured figure. */
export function reached(name: AimName, value: number | undefined): void {
  if (value !== undefined && Number.isFinite(value)) measured.set(name, value)
}

let costMicros: number | undefined

/** CPU time of a call to the virtual server at full load, in microseconds. */
export function callCosts(micros: number): void {
  costMicros = micros
}

/** Undefined when this run did not measure it. */
export function costOfCall(): number | undefined {
  return costMicros
}

/** Returns the table of the figures of this run, or an empty string when there are none. */
export function aimsTable(): string {
  const rows = Object.entries<Aim>(aims).flatMap(
    ([name, { figure, before, aim, atLeast, unit, command }]): Cell[][] => {
      const value = measured.get(name as AimName)
      if (value === undefined) return []
      const met = atLeast ? value >= aim : value <= aim
      const cell = (text: string) => (unit === undefined ? text : `${text} ${unit}`)
      return [[figure, before, cell(String(aim)), cell(digits(value)), met ? 'yes' : 'no', `\`${command}\``]]
    },
  )
  return rows.length === 0 ? '' : table(['figure', 'before', 'aim', 'reached', 'met', 'command'], rows)
}

function digits(value: number): string {
  const size = Math.abs(value)
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)
}
