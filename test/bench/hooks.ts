/**
 * How long a sync of a VirtualMCPServer takes, for groups of 5, 50 and 500 backends, in process.
 *
 * The yardstick in the same run is `JSON.parse` of the request, which the server must do in any case: the figure to
 * watch is how many times that a sync costs. A quarter of the backends has credentials of its own.
 */
import { makeHooks } from '../../hooks/index.ts'
import { auth, entry, group, secrets, server, virtual } from '../hooks/resources.ts'
import { testSettings, World } from '../hooks/world.ts'

const sizes = [5, 50, 500] as const

/** Prints one line per size. */
export async function run(): Promise<void> {
  const hook = makeHooks(testSettings).byKind('VirtualMCPServer')
  if (!hook) throw new Error('no hook for VirtualMCPServer')
  console.log('backends   request      parse p50      sync p50      sync p99   sync/parse')
  for (const size of sizes) {
    const text = JSON.stringify(worldOf(size).request('VirtualMCPServer', 'door'))
    const rounds = Math.max(60, Math.round(2_000 / size))
    const parse = measure(rounds, () => JSON.parse(text))
    const request: unknown = JSON.parse(text)
    const sync = measure(rounds, () => hook.sync(request))
    console.log(
      [
        String(size).padStart(8),
        `${(text.length / 1024).toFixed(0)} KiB`.padStart(10),
        milliseconds(at(parse, 0.5)),
        milliseconds(at(sync, 0.5)),
        milliseconds(at(sync, 0.99)),
        `${(at(sync, 0.5) / at(parse, 0.5)).toFixed(1)} x`.padStart(12),
      ].join(' '),
    )
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

/** Durations in milliseconds, sorted; a tenth as many calls go before, to warm up. */
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
  return `${value.toFixed(2)} ms`.padStart(13)
}
