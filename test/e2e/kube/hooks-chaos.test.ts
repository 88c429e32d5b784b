/**
 * Kills and delays the hooks and makes them respond wrongly during 200 changes to objects. After they recover, the
 * state is the same as after the same changes without disturbance. Uses a real API server and a real Metacontroller.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { apiVersion, kinds } from '../../../schemas/index.ts'
import { type DisturbedHooks, generator, startDisturbedHooks } from '../../helpers/hooks/disturbed-hooks.ts'
import { apiClient, type ApiClient } from '../../helpers/kube/api-client.ts'
import { startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { installControllers } from '../../helpers/kube/controllers.ts'
import { metacontrollerMissing, startMetacontroller } from '../../helpers/kube/metacontroller.ts'

const namespace = 'chaos'
const changeCount = 200

interface Obj {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly generation?: number
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly { readonly uid: string }[]
  }
  readonly [field: string]: unknown
}

interface Change {
  readonly verb: 'create' | 'patch' | 'delete'
  readonly plural: string
  readonly name: string
  readonly body?: object
}

const pluralOf = (kind: string) => kinds.find((one) => one.kind === kind)?.plural ?? ''
const groups = ['red', 'blue']

/** The objects at the start of a run. */
const pool: readonly (readonly [kind: string, name: string, spec: object])[] = [
  ...groups.map((name) => ['MCPGroup', name, { description: name }] as const),
  ...groups.map((name) => ['MCPToolConfig', name, { toolsFilter: ['one'] }] as const),
  ...groups.map(
    (name) =>
      ['VirtualMCPServer', name, { groupRef: { name }, incomingAuth: { type: 'anonymous' } }] as const,
  ),
  ...['a', 'b', 'c', 'd'].map(
    (name) =>
      [
        'MCPServer',
        name,
        { image: `example/${name}:1`, transport: 'streamable-http', groupRef: { name: 'red' } },
      ] as const,
  ),
  ...['e', 'f', 'g', 'h'].map(
    (name) =>
      [
        'MCPRemoteProxy',
        name,
        { remoteUrl: `https://${name}.example.com/mcp`, groupRef: { name: 'blue' } },
      ] as const,
  ),
  ...['i', 'j', 'k', 'l'].map(
    (name) =>
      [
        'MCPServerEntry',
        name,
        { remoteUrl: `https://${name}.example.com/mcp`, transport: 'sse', groupRef: { name: 'red' } },
      ] as const,
  ),
]

/**
 * Returns the same 200 changes in each run: new values, references to missing objects, and objects that are created and
 * deleted.
 */
function changes(): readonly Change[] {
  const random = generator(7)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const create = ([kind, name, spec]: (typeof pool)[number]): Change => ({
    verb: 'create',
    plural: pluralOf(kind),
    name,
    body: { apiVersion, kind, metadata: { name, namespace }, spec },
  })
  const made: Change[] = pool.map(create)
  const gone = new Set<(typeof pool)[number]>()
  const workloads = pool.filter(([kind]) => kind === 'MCPServer' || kind === 'MCPRemoteProxy')
  const shared = pool.filter(([kind]) => kind === 'MCPGroup' || kind === 'MCPToolConfig')
  while (made.length + workloads.length + shared.length < changeCount) {
    const one = pick(pool)
    const [kind, name] = one
    const change = { plural: pluralOf(kind), name }
    // No garbage collector runs here, so only objects without children are deleted.
    const isChildless = kind === 'MCPServerEntry' || kind === 'MCPToolConfig' || kind === 'MCPGroup'
    if (gone.has(one)) {
      gone.delete(one)
      made.push(create(one))
    } else if (isChildless && random() < 0.3) {
      gone.add(one)
      made.push({ ...change, verb: 'delete' })
    } else made.push({ ...change, verb: 'patch', body: { spec: patchOf(kind, made.length, pick, random) } })
  }
  // At the end every reference resolves. A broken one keeps the previous children, which depend on timing.
  for (const one of shared)
    made.push(
      gone.delete(one)
        ? create(one)
        : {
            verb: 'patch',
            plural: pluralOf(one[0]),
            name: one[1],
            body: { metadata: { labels: { end: 'near' } } },
          },
    )
  for (const [kind, name] of workloads) {
    const spec = { groupRef: { name: pick(groups) }, toolConfigRef: { name: pick(groups) } }
    made.push({ verb: 'patch', plural: pluralOf(kind), name, body: { spec } })
  }
  return made
}

function patchOf(
  kind: string,
  count: number,
  pick: <T>(list: readonly T[]) => T,
  random: () => number,
): object {
  const groupRef = { name: pick([...groups, 'missing']) }
  const toolConfigRef = random() < 0.5 ? { name: pick([...groups, 'missing']) } : null
  const replicas = 1 + Math.floor(random() * 4)
  if (kind === 'MCPGroup') return { description: `change ${count}` }
  if (kind === 'MCPToolConfig') return { toolsFilter: [`tool-${count}`] }
  if (kind === 'VirtualMCPServer') return { config: { aggregation: { excludeAllTools: random() < 0.5 } } }
  if (kind === 'MCPServerEntry') return { remoteUrl: `https://host-${count}.example.com/mcp`, groupRef }
  const proxyPort = 8000 + count
  return random() < 0.5 ? { groupRef, toolConfigRef } : { replicas, proxyPort }
}

const base = `/apis/gatehouse.dev/v1beta1/namespaces/${namespace}`
const childPaths = [
  ...['configmaps', 'services', 'serviceaccounts'].map(
    (plural) => `/api/v1/namespaces/${namespace}/${plural}`,
  ),
  ...['deployments', 'statefulsets'].map((plural) => `/apis/apps/v1/namespaces/${namespace}/${plural}`),
  ...['roles', 'rolebindings'].map(
    (plural) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/${plural}`,
  ),
  `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`,
  `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`,
]

async function perform(api: ApiClient, { verb, plural, name, body }: Change): Promise<void> {
  const path = `${base}/${plural}${verb === 'create' ? '' : `/${name}`}`
  const method = { create: 'POST', patch: 'PATCH', delete: 'DELETE' }[verb]
  const { status, body: answer } = await api.send(method, path, body)
  if (status >= 300) throw new Error(`${verb} ${plural}/${name}: ${status} ${JSON.stringify(answer)}`)
}

async function list(api: ApiClient, path: string): Promise<readonly Obj[]> {
  const { status, body } = await api.send('GET', path)
  if (!Array.isArray(body['items'])) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
  return body['items']
}

/** Returns all objects by name, without fields that record when and how often they were written. */
async function stateOf(api: ApiClient): Promise<State> {
  const parents = (await Promise.all(kinds.map(({ plural }) => list(api, `${base}/${plural}`)))).flat()
  const uids = new Set(parents.map(({ metadata }) => metadata.uid))
  const children = await Promise.all(
    childPaths.map(async (path) =>
      (await list(api, path))
        .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uids.has(uid)))
        .map(
          (object) =>
            [
              `${path.split('/').at(-1)} ${object.metadata.name}`,
              plain({ ...object, status: undefined }),
            ] as const,
        ),
    ),
  )
  const own = parents.map(
    (object) =>
      [
        `${object.kind} ${object.metadata.name}`,
        { ...plain(object), generation: object.metadata.generation },
      ] as const,
  )
  return Object.fromEntries([...own, ...children.flat()].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

const volatile = new Set(['lastTransitionTime', 'clusterIP', 'clusterIPs', 'resourceVersion', 'uid'])

const unordered = new Set(['volumes', 'volumeMounts', 'env'])
const byJson = (a: unknown, b: unknown): number => (sortedJson(a) < sortedJson(b) ? -1 : 1)

function sortedJson(value: unknown): string {
  return JSON.stringify(Object.entries(value as object).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function plain({ metadata, ...rest }: Obj): object {
  const { 'controller-uid': _, ...labels } = metadata.labels ?? {}
  const { 'metacontroller.k8s.io/last-applied-configuration': __, ...annotations } =
    metadata.annotations ?? {}
  const { apiVersion: ___, kind: ____, ...fields } = rest as Record<string, unknown>
  const text = JSON.stringify({ labels, annotations, ...fields }, (key, value: unknown) => {
    if (volatile.has(key)) return undefined
    // Metacontroller keeps the previous order of lists.
    return unordered.has(key) && Array.isArray(value) ? value.toSorted(byJson) : value
  })
  return JSON.parse(text)
}

/** Returns the number of parents that were not processed since their last change. */
async function behind(api: ApiClient): Promise<number> {
  const parents = (await Promise.all(kinds.map(({ plural }) => list(api, `${base}/${plural}`)))).flat()
  return parents.filter(
    ({ metadata, status }) =>
      (status as { observedGeneration?: number } | undefined)?.observedGeneration !== metadata.generation,
  ).length
}

/** Simulates the workload controllers: every requested pod is ready. */
async function makeReady(api: ApiClient): Promise<void> {
  for (const path of childPaths.filter((one) => one.startsWith('/apis/apps/')))
    for (const { metadata, spec, status } of await list(api, path)) {
      const { replicas } = spec as { readonly replicas: number }
      const observedGeneration = metadata.generation
      const now = status as { readonly replicas?: number; readonly observedGeneration?: number } | undefined
      if (now?.replicas === replicas && now.observedGeneration === observedGeneration) continue
      const counts = {
        replicas,
        readyReplicas: replicas,
        availableReplicas: replicas,
        updatedReplicas: replicas,
      }
      const body = { status: { ...counts, observedGeneration } }
      await api.send('PATCH', `${path}/${metadata.name}/status`, body)
    }
}

type State = Readonly<Record<string, unknown>>

/** Returns the state after every change was processed and the hooks have been idle for a while. */
async function settled(api: ApiClient, hooks: DisturbedHooks): Promise<State> {
  for (;;) {
    await makeReady(api)
    const before = hooks.counts.forwarded
    await pause(2_000)
    if (hooks.counts.forwarded !== before || hooks.inFlight() > 0) continue
    const state = await stateOf(api)
    if ((await behind(api)) === 0) return state
  }
}

/**
 * Waits for this state. Returns the current state after a long timeout, because failed syncs are retried with growing
 * pauses.
 */
async function become(api: ApiClient, wanted: State): Promise<State> {
  const end = Date.now() + 90_000
  for (;;) {
    await makeReady(api)
    const state = await stateOf(api)
    if (isDeepStrictEqual(state, wanted) || Date.now() > end) return state
    await pause(500)
  }
}

async function clear(api: ApiClient): Promise<void> {
  for (const { plural } of kinds) await api.send('DELETE', `${base}/${plural}`)
  const left = async () => (await Promise.all(childPaths.map((path) => list(api, path)))).flat()
  while ((await left()).some(({ metadata }) => metadata.ownerReferences !== undefined)) {
    for (const path of childPaths)
      for (const { metadata } of await list(api, path))
        if (metadata.ownerReferences) await api.send('DELETE', `${path}/${metadata.name}`)
    await pause(100)
  }
}

t.test('disturbed hooks reach the same final state', { skip: metacontrollerMissing() }, async (t) => {
  t.setTimeout(240_000)
  const hooks = await startDisturbedHooks(t)
  const kube = await startKubeApiserver(t)
  installControllers(kube, hooks.url)
  kube.must(['create', 'namespace', namespace])
  const api = apiClient(kube)
  t.teardown(() => api.close())
  startMetacontroller(t, kube.kubeconfig, '--target-label-selector=gatehouse.dev/instance=default')

  for (const change of changes()) await perform(api, change)
  const calm = await settled(api, hooks)
  t.ok(Object.keys(calm).length > 40, `${Object.keys(calm).length} objects`)
  t.match(calm, { 'VirtualMCPServer red': { status: { conditions: Array } } })
  await clear(api)

  hooks.disturb()
  const kills = new Set([50, 100, 150])
  const restarts: Promise<void>[] = []
  for (const [index, change] of changes().entries()) {
    if (kills.has(index)) restarts.push(hooks.kill())
    await perform(api, change)
    // Gives Metacontroller time to sync between changes.
    await pause(30)
  }
  await Promise.all(restarts)
  hooks.calm()
  const { counts } = hooks
  t.comment(JSON.stringify(counts))
  for (const [what, count] of Object.entries(counts)) t.ok(count > 2, `${what}: ${count}`)
  t.strictSame(await become(api, calm), calm, 'same state as without disturbance')
  await pause(2_000)
  t.strictSame(await stateOf(api), calm, 'the state stays the same')
})
