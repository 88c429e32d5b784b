/**
 * What tool pinning and shadow policies cost: CPU time of a virtual server for each call, against the same server without
 * them, in the same run. Servers take turns, so that what else the machine does meets them alike; the least of the rounds
 * counts. Read the ratios, not the digits. `node test/bench/pinning.ts`
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGatehouse } from '../helpers/gatehouse.ts'
import { startRawBackend, textResult } from '../helpers/mcp/raw-backend.ts'
import { openSession } from '../helpers/mcp/wire.ts'
import { bareNames } from '../helpers/vmcp/vmcp.ts'

const TOOLS = 100
const CALLS = 400
const ROUNDS = 7
const AT_ONCE = 8

const tools = Array.from({ length: TOOLS }, (_, at) =>
  JSON.stringify({
    name: `tool_${at}`,
    description: `Does the ${at}th thing`,
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  }),
)
const permit = ['permit(principal, action, resource);']
const shadow = Array.from(
  { length: 10 },
  (_, at) => `forbid(principal, action == Action::"call_tool", resource == Tool::"tool_${at * 7}");`,
)
const authz = (more: object = {}) => ({
  incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: permit, ...more } },
})
const locked = {
  pinning: { onChanged: 'block', onNew: 'block' },
  toolLocks: [
    {
      backend: 'raw',
      tools: tools.map((definition, at) => ({ name: `tool_${at}`, definition })),
    },
  ],
}

/** With, and against what. */
const compared = [
  ['pinned', 'plain'],
  ['shadow policies', 'policies'],
  ['pinned, shadow policies', 'policies'],
] as const
const variants: Readonly<Record<string, object>> = {
  plain: {},
  pinned: locked,
  policies: authz(),
  'shadow policies': authz({ shadowPolicies: shadow }),
  'pinned, shadow policies': { ...locked, ...authz({ shadowPolicies: shadow }) },
}

/** Prints the table. */
export async function run(): Promise<void> {
  const backend = await startRawBackend({
    tools: () => tools,
    responses: { 'tools/call': () => textResult('done') },
  })
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  const servers = []
  try {
    for (const [name, config] of Object.entries(variants))
      servers.push(await startVariant(folder, name, backend.url, config))
    const least = new Map<string, number>()
    for (let round = 0; round < ROUNDS; round++) {
      for (const { name, microseconds } of servers) {
        const spent = await microseconds()
        if (round > 0) least.set(name, Math.min(spent, least.get(name) ?? Number.POSITIVE_INFINITY))
      }
    }
    console.log(
      `\nCPU of a virtual server with ${TOOLS} tools, ${CALLS} calls in each of ${ROUNDS - 1} rounds`,
    )
    for (const [name, base] of compared) {
      const [own = Number.NaN, without = Number.NaN] = [least.get(name), least.get(base)]
      const share = ((own / without - 1) * 100).toFixed(1)
      console.log(
        `  ${name.padEnd(24)} ${own.toFixed(0)} µs a call, ${base} ${without.toFixed(0)} µs: ${share} %`,
      )
    }
  } finally {
    for (const { stop } of servers) await stop()
    await backend.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startVariant(folder: string, name: string, url: string, config: object) {
  const file = join(folder, `${name.replaceAll(/\W/g, '-')}.json`)
  writeFileSync(
    file,
    JSON.stringify({
      name: 'bench',
      groupRef: 'bench',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: bareNames('raw'),
      backends: [{ name: 'raw', url, transport: 'streamable-http' }],
      telemetry: { enablePrometheusMetricsPath: true },
      ...config,
    }),
  )
  const server = startGatehouse(['vmcp', 'serve', '-c', file, '--port', '0'])
  const [, origin = ''] = await server.waitFor(/(http:\/\/127\.0\.0\.1:\d+)/)
  const session = await openSession(`${origin}/mcp`)
  await session.request('tools/list')
  const cpu = async (): Promise<number> => {
    const text = await (await fetch(`${origin}/metrics`)).text()
    return Number(/^process_cpu_seconds_total(?:\{[^}]*\})? ([\d.e+-]+)$/m.exec(text)?.[1]) * 1e6
  }
  return {
    name,
    /** For one call. */
    async microseconds(): Promise<number> {
      const before = await cpu()
      let left = CALLS
      const client = async (): Promise<void> => {
        while (left-- > 0) {
          const params = { name: `tool_${left % TOOLS}`, arguments: { text: 'x' } }
          const { response } = await session.request('tools/call', params)
          if (!response?.result) throw new Error(`${name}: a call failed`)
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, client))
      return ((await cpu()) - before) / CALLS
    },
    stop: () => server.interrupt(),
  }
}

if (import.meta.main) await run()
