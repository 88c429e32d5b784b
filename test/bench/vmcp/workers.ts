/**
 * Compares one worker with two of the built program, in turns: calls per second, and CPU time and memory of all
 * processes together.
 *
 * The load has its own core only on machines with more than two; on two cores, compare the CPU time.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { descendantsOf, freePort } from '../../helpers/gatehouse.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'
import { cpuMs, memoryOf, type Program, startProgram, stopPrograms } from '../programs/run.ts'
import { allCores } from '../common/cores.ts'
import { inTurns, median, warmUp } from '../common/turns.ts'
import { BenchClient, callOf, type Sent } from './client.ts'
import { closedLoop } from './load.ts'
import { named, startBackends } from './rig.ts'
import { progress, table } from './table.ts'

const program = join(import.meta.dirname, '../../../dist/gatehouse.js')
const connections = 32
/** CPU seconds until a worker has optimized its code, which requires load. */
const warmUpSeconds = 6
const rounds = 5

export async function workers(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const backends = await startBackends()
  const file = join(folder, 'vmcp.json')
  writeFileSync(file, JSON.stringify(vmcpConfig(named(backends.urls))))
  try {
    const servers = [await startWorkers(file, 1), await startWorkers(file, 2)]
    await warmUp(
      servers,
      warmUpSeconds,
      ({ name, program: server }) => (ofAll(server, cpuMs) * 1_000) / Number(name),
      (one) => load(one, 1),
    )
    const slices = await inTurns(servers, { rounds, warmUps: 1 }, (one) => load(one, 1))
    const rows = [...slices].map(([{ name, program: server }, all]) => [
      name,
      ...(['perSecond', 'p50Ms', 'p99Ms', 'cpu'] as const).map((one) =>
        median(all.map((slice) => slice[one])),
      ),
      ofAll(server, (pid) => memoryOf(pid).now),
    ])
    return table(['workers', 'calls/s', 'p50 ms', 'p99 ms', 'CPU µs/call', 'RSS MB, all processes'], rows)
  } finally {
    stopPrograms()
    await backends.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Workers {
  readonly name: string
  readonly url: string
  readonly program: Program
  readonly calls: readonly Sent[]
}

async function startWorkers(file: string, count: number): Promise<Workers> {
  progress(`${count} workers`)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/mcp`
  const args = [
    program,
    'vmcp',
    'serve',
    '--config',
    file,
    '--port',
    String(port),
    '--workers',
    String(count),
  ]
  const ready = async (): Promise<boolean> => {
    const client = new BenchClient(url)
    try {
      return (await client.openSession()) !== ''
    } finally {
      await client.close()
    }
  }
  const { program: server } = await startProgram(args, ready, { onCores: allCores })
  const client = new BenchClient(url)
  // One session for each connection, so that the calls of a session reach every worker.
  const sessions = await Promise.all(Array.from({ length: connections }, () => client.openSession()))
  const calls = sessions.map((session) => callOf('session', 'b0_echo', session))
  await client.close()
  return { name: String(count), url, program: server, calls }
}

async function load({ url, program: server, calls }: Workers, seconds: number) {
  const before = ofAll(server, cpuMs)
  const done = await closedLoop(url, calls, seconds, connections)
  return { ...done, cpu: ((ofAll(server, cpuMs) - before) * 1_000) / done.requests }
}

function ofAll({ pid }: Program, value: (pid: number) => number): number {
  return [pid, ...descendantsOf(pid)].reduce((sum, one) => sum + value(one), 0)
}
