/** Measures the memory of a remembered session in the proxy: its id, and the initialize request that can reopen it. */
import { Pool } from 'undici'
import { progress, table } from '../vmcp/table.ts'
import { memoryHead, memoryRow } from './memory.ts'
import { type Peer, pinSelf, startProbedProxy, startTarget } from './rig.ts'
import { callHeaders } from './throughput.ts'

const SESSIONS = 10_000
const AT_ONCE = 32

const initialize = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { roots: { listChanged: true }, sampling: {}, elicitation: {} },
    clientInfo: { name: 'bench', title: 'A client of ordinary size', version: '1.2.3' },
  },
})

export async function sessions(): Promise<string> {
  pinSelf(1)
  const target = await startTarget()
  const proxy = await startProbedProxy(target)
  progress('warming up')
  // The same requests without a session, to subtract the memory that they leave behind.
  await send(proxy, '/mcp', SESSIONS)
  const before = await proxy.memory()
  progress(`${SESSIONS} sessions`)
  await send(proxy, '/mcp?session', SESSIONS)
  const after = await proxy.memory()
  return table(memoryHead, [
    memoryRow(`${SESSIONS} sessions, initialize of ${initialize.length} bytes`, SESSIONS, before, after),
  ])
}

async function send(proxy: Peer, path: string, count: number): Promise<void> {
  const pool = new Pool(proxy.origin, { connections: AT_ONCE })
  let left = count
  async function one(): Promise<void> {
    while (left-- > 0) {
      const { statusCode, body } = await pool.request({
        path,
        method: 'POST',
        headers: callHeaders,
        body: initialize,
      })
      await body.dump()
      if (statusCode !== 200) throw new Error(`a session was refused with ${statusCode}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, one))
  await pool.close()
}
