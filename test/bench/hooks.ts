/**
 * How long a sync of a VirtualMCPServer takes, for groups of 5, 50 and 500 backends, and how long it takes to answer for
 * a thousand VirtualMCPServers, as after an upgrade. In process, on one core.
 *
 * Percentiles are of the clock, so a busy machine shows in p99; the resync is processor time of this thread. The yardstick
 * in the same run is `JSON.parse` of the request, which the server must do in any case. A quarter of the backends has
 * credentials of its own.
 */
import { reached } from './aims.ts'
import { makeHooks } from '../../hooks/index.ts'
import { auth, entry, group, secrets, server, virtual } from '../hooks/resources.ts'
import { testSettings, World } from '../hooks/world.ts'

const sizes = [5, 50, 500] as const
const servers = 1000

/** Prints one line per size. */
export async function run(): Promise<void> {
  const hook = makeHooks(testSettings).byKind('VirtualMCPServer')
  if (!hook) throw new Error('no hook for VirtualMCPServer')
  const texts = sizes.map((size) => JSON.stringify(worldOf(size).request('VirtualMCPServer', 'door')))
  // The first thousand calls are the compiler's.
  for (let i = 0; i < 500; i++) for (const text of texts.slice(0, 2)) hook.sync(JSON.parse(text))
  const columns = [
    'backends',
    'request',
    'parse p50',
    'sync p50',
    'sync p99',
    'per backend',
    'resync of 1,000',
  ]
  console.log(columns.map((column) => column.padStart(16)).join(''))
  for (const [index, size] of sizes.entries()) {
    const text = texts[index] ?? ''
    const rounds = Math.max(400, Math.round(50_000 / size))
    const parse = measure(Math.ceil(rounds / 4), () => JSON.parse(text))
    const request: unknown = JSON.parse(text)
    const sync = measure(rounds, () => hook.sync(request))
    // What the server does for each call: read, answer, write.
    const resync = processorSeconds(() => {
      for (let i = 0; i < servers; i++) JSON.stringify(hook.sync(JSON.parse(text)))
    })
    if (size === 50) reached('sync50', at(sync, 0.99))
    const cells = [
      String(size),
      `${(text.length / 1024).toFixed(0)} KiB`,
      milliseconds(at(parse, 0.5)),
      milliseconds(at(sync, 0.5)),
      milliseconds(at(sync, 0.99)),
      milliseconds(at(sync, 0.5) / size),
      `${resync.toFixed(1)} s`,
    ]
    console.log(cells.map((cell) => cell.padStart(16)).join(''))
    // Lets the next size start with a quiet heap.
    await new Promise(setImmediate)
  }
}

function worldOf(size: number): World {
  const members = Array.from({ length: size }, (_, i) =>
    i % 2 === 0
      ? server(`server-${i}`)
      : entry(`entry-${i}`, i % 4 === 1 ? { externalAuthConfigRef: { name: 'exchange' } } : {}),
  )
  const world = new World().apply(group, ...secrets, auth.exchange, ...members, virtual())
  world.sync('MCPGroup', 'tools')
  world.sync('MCPExternalAuthConfig', 'exchange')
  for (const { kind, metadata } of members) world.sync(kind, metadata.name)
  world.sync('VirtualMCPServer', 'door')
  return world
}

/** Seconds of processor time that this thread spends on `work`. */
function processorSeconds(work: () => void): number {
  const start = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1e6
}

/** Milliseconds of each call, sorted; a tenth as many calls go before. */
function measure(rounds: number, work: () => unknown): number[] {
  for (let i = 0; i < Math.ceil(rounds / 10); i++) work()
  return Array.from({ length: rounds }, () => {
    const start = performance.now()
    work()
    return performance.now() - start
  }).sort((a, b) => a - b)
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

function milliseconds(value: number): string {
  return `${value.toFixed(3)} ms`
}
