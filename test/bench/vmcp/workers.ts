/**
 * One worker and two, of the built program: calls a second, and processor time and memory of all processes together.
 *
 * The load has a core of its own only where there are more than two; on two cores compare the processor time.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { descendantsOf, freePort } from '../../helpers/gatehouse.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'
import { cpuMs, memoryOf, type Program, startProgram, stopPrograms } from '../programs/run.ts'
import { BenchClient, callOf } from './client.ts'
import { closedLoop } from './load.ts'
import { named, startBackends } from './rig.ts'
import { progress, table } from './table.ts'

const program = join(import.meta.dirname, '../../../dist/gatehouse.js')
const connections = 32
const loadSeconds = 12

export async function workers(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const backends = await startBackends()
  const file = join(folder, 'vmcp.json')
  writeFileSync(file, JSON.stringify(vmcpConfig(named(backends.urls))))
  try {
    const rows = []
    for (const count of [1, 2]) rows.push(await measured(file, count))
    return table(['workers', 'calls/s', 'p50 ms', 'p99 ms', 'CPU µs/call', 'RSS MB, all processes'], rows)
  } finally {
    stopPrograms()
    await backends.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measured(file: string, count: number): Promise<(string | number)[]> {
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
  const { program: server } = await startProgram(args, async () => {
    const client = new BenchClient(url)
    try {
      return (await client.openSession()) !== ''
    } finally {
      await client.close()
    }
  })
  const client = new BenchClient(url)
  // One session of each connection: calls of a session fall on every worker.
  const sessions = await Promise.all(Array.from({ length: connections }, () => client.openSession()))
  const calls = sessions.map((session) => callOf('session', 'b0_echo', session))
  await closedLoop(url, calls, 3, connections)
  const before = ofAll(server, cpuMs)
  const { perSecond, p50Ms, p99Ms, requests } = await closedLoop(url, calls, loadSeconds, connections)
  const cpu = ((ofAll(server, cpuMs) - before) * 1_000) / requests
  const rss = ofAll(server, (pid) => memoryOf(pid).now)
  await client.close()
  await server.stop()
  return [count, perSecond, p50Ms, p99Ms, cpu, rss]
}

function ofAll({ pid }: Program, value: (pid: number) => number): number {
  return [pid, ...descendantsOf(pid)].reduce((sum, one) => sum + value(one), 0)
}
