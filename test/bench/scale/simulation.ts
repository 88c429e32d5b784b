/**
 * Calls the hooks server alone, like Metacontroller: many virtual servers once each, as after an upgrade, and one
 * virtual server with a growing number of backends.
 */
import { Agent, request } from 'node:http'
import { type HooksProcess, startHooksProcess } from '../../helpers/hooks/process.ts'
import { World, type Stored } from '../../hooks/world.ts'
import { type Cell, progress, quantile, sorted, table } from '../vmcp/table.ts'
import { large, largeNamespace, type Manifest, team } from './fleet.ts'
import { usageOf } from './watch.ts'

type Scope = Parameters<typeof startHooksProcess>[0]

/** Number of virtual servers and other objects in each namespace. */
const perNamespace = { servers: 20, others: 100 } as const
const atOnce = 8
const rowsOfParents = 10
const callsOfSize = 10

interface Answer {
  readonly status: number
  readonly body: string
  readonly ms: number
}

interface HookResponse {
  readonly status?: {
    readonly conditions?: readonly Readonly<Record<'type' | 'status' | 'reason', string>>[]
  }
  readonly children?: readonly Child[]
}

interface Child {
  readonly kind: string
  readonly metadata: { readonly name: string }
}

/** Returns a table of many virtual servers, each called once. */
export async function simulateParents(t: Scope, parents: number): Promise<string> {
  const { hooks, agent } = await start(t)
  return manyParents(hooks, agent, parents)
}

/** Returns a table of one virtual server with a growing number of backends. */
export async function simulateBackends(t: Scope, sizes: readonly number[]): Promise<string> {
  const { hooks, agent } = await start(t)
  return manyBackends(hooks, agent, sizes)
}

async function start(t: Scope): Promise<{ readonly hooks: HooksProcess; readonly agent: Agent }> {
  const hooks = await startHooksProcess(t, undefined, ['--max-old-space-size=144'])
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  t.teardown(() => agent.destroy())
  return { hooks, agent }
}

async function manyParents(hooks: HooksProcess, agent: Agent, parents: number): Promise<string> {
  const world = worldOf(team('team', perNamespace.servers, perNamespace.others)).settle()
  const texts = world
    .list('VirtualMCPServer')
    .map(({ metadata }) => JSON.stringify(world.request('VirtualMCPServer', metadata.name)))
  progress(`${parents} virtual servers, requests of ${kib(texts[0] ?? '')} KiB`)
  const rows: Cell[][] = []
  const share = Math.ceil(parents / rowsOfParents)
  for (let done = 0; done < parents; done += share) {
    const before = usageOf(hooks.pid)
    const count = Math.min(share, parents - done)
    const times = await inParallel(count, async (index) => {
      const place = done + index
      const text = texts[place % texts.length] ?? ''
      const named = inNamespace(text, `team-${Math.floor(place / texts.length)}`)
      const { status, ms } = await sync(hooks.port, agent, 'virtualmcpservers', named)
      if (status !== 200) throw new Error(`a sync was answered with ${status}`)
      return ms
    })
    const { cpuSeconds, rssMb, peakRssMb } = usageOf(hooks.pid)
    const cpuMs = (1000 * (cpuSeconds - before.cpuSeconds)) / count
    rows.push([done + count, quantile(times, 0.5), quantile(times, 0.99), cpuMs, rssMb, peakRssMb])
    progress(rows.at(-1)?.join(' ') ?? '')
  }
  return table(['virtual servers', 'p50 ms', 'p99 ms', 'CPU ms each', 'RSS MB', 'peak RSS MB'], rows)
}

async function manyBackends(hooks: HooksProcess, agent: Agent, sizes: readonly number[]): Promise<string> {
  const rows: Cell[][] = []
  for (const size of sizes) {
    const world = worldOf(largeNamespace(size))
    // An entry is usable once its group exists. All entries are the same.
    world.sync('MCPGroup', large.group)
    world.sync('MCPServerEntry', 'backend-0')
    const { status } = world.get('MCPServerEntry', 'backend-0')
    for (const { metadata } of world.list('MCPServerEntry'))
      world.setStatus('MCPServerEntry', metadata.name, status)
    world.sync('MCPGroup', large.group)
    world.sync('VirtualMCPServer', large.server)
    const text = JSON.stringify(world.request('VirtualMCPServer', large.server))
    progress(`${size} backends, a request of ${kib(text)} KiB`)
    const answers: Answer[] = []
    for (let call = 0; call < callsOfSize; call += 1)
      answers.push(await sync(hooks.port, agent, 'virtualmcpservers', text))
    const times = sorted(answers.map(({ ms }) => ms))
    const [{ status: code, body } = { status: 0, body: '{}' }] = answers
    const response: HookResponse = code === 200 ? JSON.parse(body) : {}
    const config = response.children?.find(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-config'),
    )
    const invalid = response.status?.conditions?.find(
      ({ type, status }) => type === 'Valid' && status === 'False',
    )
    rows.push([
      size,
      kib(text),
      code === 200 ? (invalid?.reason ?? 'applied') : `status ${code}`,
      config && kib(JSON.stringify(config)),
      kib(JSON.stringify(response.status ?? {})),
      kib(JSON.stringify(world.get('MCPGroup', large.group)['status'])),
      quantile(times, 0.5),
      quantile(times, 0.99),
      usageOf(hooks.pid).rssMb,
    ])
    progress(rows.at(-1)?.join(' ') ?? '')
  }
  const head = [
    'backends of one server',
    'request KiB',
    'outcome',
    'ConfigMap KiB',
    'status KiB',
    'status of the group KiB',
    'p50 ms',
    'p99 ms',
    'RSS MB',
  ]
  return table(head, rows)
}

function worldOf(manifests: readonly Manifest[]): World {
  // The world's own type is open for whatever a test writes.
  const stored = manifests.map(({ metadata, ...rest }): Stored => ({ ...rest, metadata: { ...metadata } }))
  return new World().apply(...stored)
}

function inNamespace(text: string, namespace: string): string {
  return text
    .replaceAll('"namespace":"team"', `"namespace":"${namespace}"`)
    .replaceAll('"team/', `"${namespace}/`)
}

/** Returns the sorted results of `work`. */
async function inParallel(count: number, work: (index: number) => Promise<number>): Promise<Float64Array> {
  const indexes = Array.from({ length: count }, (_, index) => index).values()
  const results: number[] = []
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const index of indexes) results.push(await work(index))
    }),
  )
  return sorted(results)
}

function sync(port: number, agent: Agent, plural: string, text: string): Promise<Answer> {
  const body = Buffer.from(text)
  const start = performance.now()
  const headers = { 'content-type': 'application/json', 'content-length': body.length }
  const options = { host: '127.0.0.1', port, path: `/hooks/${plural}/sync`, method: 'POST', agent, headers }
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      let answer = ''
      response.setEncoding('utf8').on('data', (part: string) => (answer += part))
      response
        .on('error', reject)
        .on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: answer, ms: performance.now() - start }),
        )
    })
    sent.on('error', reject).end(body)
  })
}

function kib(text: string): number {
  return Buffer.byteLength(text) / 1024
}
