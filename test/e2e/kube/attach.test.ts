/**
 * Runs a stdio server with its image's own entrypoint on a cluster, with the children that the hooks render, their own
 * rights and a real API server. Meanwhile the server is killed, its proxy is rolled and the API server restarts. Every
 * call ends, and a lost call returns an error.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { server, world } from '../../hooks/resources.ts'
import { controllerManagerAbsent, type KubeApiserver } from '../../helpers/kube/apiserver.ts'
import {
  type Image,
  imageOfDockerfile,
  imageOfPackage,
  insideNamespaces,
  isInsideNamespaces,
  type LocalNode,
  nodeMissing,
  startCluster,
} from '../../helpers/kube/node/index.ts'
import { imageFolder, until } from '../../helpers/kube/node/installation.ts'
import { openSession, type WireSession } from '../../helpers/mcp/wire.ts'
import { testSettings } from '../../hooks/world.ts'

const built = existsSync('dist/gatehouse.js')
const missing = controllerManagerAbsent() || nodeMissing() || (built ? false : 'run make build first')
const namespace = 'team'
const url = 'http://mcp-files-proxy.team.svc.cluster.local:8080/mcp'
const sessions = 20
const calls = 1_000

function imagesIn(folder: string): ReadonlyMap<string, Image> {
  const at = (name: string) => imageFolder(folder, name)
  const everything = '@modelcontextprotocol/server-everything'
  return new Map([
    [testSettings.runtimeImage, imageOfDockerfile('runtime/Dockerfile', at('runtime'))],
    // An image like its publisher's: no entrypoint, and a command that arguments replace.
    [
      'mcp/everything',
      imageOfPackage(at('everything'), everything, { entrypoint: [], cmd: ['node', 'dist/index.js'] }),
    ],
  ])
}

/** Returns the children that the hooks render for an MCPServer with only an image. */
function childrenOf(): readonly object[] {
  const w = world(server('files', { image: 'mcp/everything', transport: 'stdio' }))
  return w.sync('MCPServer', 'files').children
}

/** Returns the processes of the server itself, without their parents. */
function serverProcesses(): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === 'node\0dist/index.js\0'
      } catch {
        return false
      }
    })
    .map(Number)
}

interface Rig {
  readonly kube: KubeApiserver
  readonly node: LocalNode
  readonly record: () => { attached?: boolean; reason?: string; message?: string; restarts?: number }
}

const explained = {
  lost: /the connection to the server was lost during the request|the connection broke/,
  unsent: /and the request was not sent|could not be reached|Session not found|the proxy is away|HTTP 50[23]/,
}

/** Makes one call and resolves with its outcome. Opens a new session when the old one is gone. */
async function call(open: { session: WireSession }, id: string, long: boolean): Promise<string> {
  try {
    const [name, args] = long
      ? ['trigger-long-running-operation', { duration: 0.4, steps: 2 }]
      : ['echo', { message: id }]
    const { status, text, response } = await open.session.request('tools/call', { name, arguments: args })
    if (response?.result)
      return text.includes(long ? 'completed' : `Echo: ${id}`) ? 'answered' : `wrong: ${text}`
    const said = response?.error?.message ?? `HTTP ${status}`
    if (status === 404) open.session = await reopened()
    return said
  } catch (error) {
    open.session = await reopened()
    return reasonOf(error)
  }
}

/** A refused connection carried no data; a broken connection may have. */
function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : new Error('failed')
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(error)
  return code === 'ECONNREFUSED' || code === 'ENOTFOUND'
    ? `the proxy is away: ${code}`
    : `the connection broke: ${code}`
}

async function reopened(): Promise<WireSession> {
  for (;;) {
    try {
      const session = await openSession(url)
      if (session.initialized.result) return session
    } catch {
      // The proxy is being replaced.
    }
    await pause(200)
  }
}

async function scenario(t: Test): Promise<void> {
  const { kube, node } = await startCluster(t, imagesIn)
  kube.must(['create', 'namespace', namespace])
  const list = { apiVersion: 'v1', kind: 'List', items: childrenOf() }
  kube.must(['apply', '-n', namespace, '-f', '-'], JSON.stringify(list))
  const deployment = () => kube.get(['deployment', 'mcp-files-proxy', '-n', namespace])
  const isThere = () => {
    const { status, metadata, spec } = deployment()
    return (
      status.observedGeneration === metadata.generation &&
      status.updatedReplicas === spec.replicas &&
      status.availableReplicas === spec.replicas
    )
  }
  const record: Rig['record'] = () => {
    const { data } = kube.get(['configmap', 'mcp-files-attach-status', '-n', namespace])
    return JSON.parse(data?.['attach.json'] ?? '{}')
  }
  await until('the proxy', isThere, { kube, node })
  await t.test('the Role allows access to this one pod only', (t) => rights(t, kube))
  await t.test('1,000 calls of 20 sessions end through all disruptions', (t) =>
    storm(t, { kube, node, record }, isThere),
  )
  if (!t.passing()) t.comment(await node.output())
}

function rights(t: Test, kube: KubeApiserver): void {
  const account = 'system:serviceaccount:team:mcp-files-proxy'
  const can = (...what: string[]) =>
    kube.kubectl(['auth', 'can-i', ...what, '-n', namespace, '--as', account]).code === 0
  t.ok(can('get', 'pods/mcp-files-server-0'))
  t.ok(can('create', 'pods/mcp-files-server-0', '--subresource=attach'))
  t.ok(can('patch', 'configmaps/mcp-files-attach-status'))
  t.notOk(can('list', 'pods'))
  t.notOk(can('create', 'pods', '--subresource=attach'))
  t.notOk(can('create', 'pods/other-server-0', '--subresource=attach'))
  t.notOk(can('create', 'pods/mcp-files-server-0', '--subresource=exec'))
  t.notOk(can('get', 'pods/mcp-files-server-0', '--subresource=log'))
  t.notOk(can('get', 'secrets'))
  t.end()
}

async function storm(t: Test, rig: Rig, isThere: () => boolean): Promise<void> {
  const { kube, record } = rig
  const ends = new Map<string, number>()
  let begun = 0
  async function work(at: number): Promise<void> {
    const open = { session: await openSession(url) }
    while (begun < calls) {
      const number = begun++
      const end = await call(open, `${at}/${number}`, number % 4 === 0)
      ends.set(end, (ends.get(end) ?? 0) + 1)
      await pause(150)
    }
  }
  const working = Promise.all(Array.from({ length: sessions }, (_, at) => work(at)))
  const attachedTo = (restarts: number) => () => record().attached === true && record().restarts === restarts
  const disruptions = {
    async kill() {
      const restarts = record().restarts ?? 0
      for (const pid of serverProcesses()) process.kill(pid, 'SIGKILL')
      await until('the server again', attachedTo(restarts + 1), rig)
    },
    async roll() {
      const patch = { spec: { template: { metadata: { annotations: { rolled: `${performance.now()}` } } } } }
      kube.must(['patch', 'deployment', 'mcp-files-proxy', '-n', namespace, '-p', JSON.stringify(patch)])
      await until('the proxy again', isThere, rig)
    },
    restart: () => kube.restart(),
  }
  const order = ['kill', 'roll', 'kill', 'restart', 'kill', 'kill', 'roll', 'kill'] as const
  for (const what of order) {
    const from = begun
    // Waits until clients have made calls again for a while.
    await until('calls', () => begun >= Math.min(from + 60, calls), rig)
    await disruptions[what]()
  }
  await working
  const all = [...ends]
  const count = (fits: (end: string) => boolean) =>
    all.reduce((sum, [end, times]) => sum + (fits(end) ? times : 0), 0)
  const lost = count((end) => explained.lost.test(end))
  const unsent = count((end) => explained.unsent.test(end))
  const answered = count((end) => end === 'answered')
  t.comment(`${answered} answered, ${lost} lost, ${unsent} not sent`)
  for (const [end, times] of all) t.comment(`${times} × ${end}`)
  t.equal(
    count(() => true),
    begun,
    'every call has ended',
  )
  t.ok(begun >= calls)
  t.equal(answered + lost + unsent, begun, 'each call has a result or an explanation')
  t.ok(lost <= sessions * order.length, 'only calls in flight were lost')
  t.ok(answered > calls / 2)
  const after = await openSession(url)
  t.match(
    (await after.request('tools/call', { name: 'echo', arguments: { message: 'after' } })).text,
    'Echo: after',
  )
}

t.setTimeout(240_000)

if (missing) t.test('attach to a stdio server on a cluster', { skip: missing }, () => {})
else if (isInsideNamespaces()) await t.test('attach to a stdio server on a cluster', scenario)
else await insideNamespaces(t, import.meta.filename)
