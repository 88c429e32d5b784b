/**
 * A cluster without nodes: a real API server with etcd, a real Metacontroller and the built hooks server, over plain
 * HTTP. No pods run and admission is not called, because only reconciling is measured.
 */
import { get } from 'node:https'
import { readFileSync } from 'node:fs'
import { kinds } from '../../../schemas/index.ts'
import { type HooksProcess, startHooksProcess } from '../../helpers/hooks/process.ts'
import { apiClient, type ApiClient } from '../../helpers/kube/api-client.ts'
import { type KubeApiserver, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { installControllers } from '../../helpers/kube/controllers.ts'
import { type Metacontroller, startMetacontroller } from '../../helpers/kube/metacontroller.ts'
import { type FleetSize, type Manifest, namespacesOf, pluralOf } from './fleet.ts'
import { Counts, samplesOf } from './watch.ts'

type Scope = Parameters<typeof startKubeApiserver>[0]

export interface Cluster {
  readonly api: ApiClient
  readonly hooks: HooksProcess
  /** Starts Metacontroller, or replaces the running one. */
  startMetacontroller(): Promise<Metacontroller>
  /** Handled requests of the API server for the resources of Metacontroller and Gatehouse. */
  apiRequests(): Promise<Counts>
  /** Number of hook calls by hook, kind and status. */
  hookCalls(): Promise<Counts>
  /** Number of sync calls by upper bound of their duration in seconds. */
  syncTimes(kind?: string): Promise<Counts>
}

const writing = new Set(['POST', 'PUT', 'PATCH', 'DELETE', 'APPLY'])
const plurals = new Set<string>(kinds.map(({ plural }) => plural))
const childResources = new Set(
  'deployments statefulsets services configmaps serviceaccounts roles rolebindings networkpolicies poddisruptionbudgets'.split(
    ' ',
  ),
)

/** Returns true when a name of `apiRequests` is a write. */
export const isWrite = (key: string): boolean => writing.has(key.split(' ')[0] ?? '')

export function sum({ byKey }: Counts, counts: (key: string) => boolean): number {
  return [...byKey].reduce((all, [key, value]) => (counts(key) ? all + value : all), 0)
}

export async function startCluster(t: Scope, size: FleetSize): Promise<Cluster> {
  const hooks = await startHooksProcess(t, undefined, ['--max-old-space-size=144'])
  const kube = await startKubeApiserver(t)
  installControllers(kube, `http://127.0.0.1:${hooks.port}`)
  const api = apiClient(kube)
  t.teardown(() => api.close())
  for (const name of namespacesOf(size)) {
    await api.send('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    })
  }
  let metacontroller: Metacontroller | undefined
  const hookPage = async () => (await fetch(`http://127.0.0.1:${hooks.port}/metrics`)).text()
  return {
    api,
    hooks,
    async startMetacontroller() {
      await metacontroller?.stop()
      metacontroller = startMetacontroller(
        t,
        kube.kubeconfig,
        '--target-label-selector=gatehouse.dev/instance=default',
      )
      return metacontroller
    },
    apiRequests: async () =>
      new Counts().add(
        samplesOf(await apiPage(kube), 'apiserver_request_total'),
        ({ verb = '', resource = '', subresource = '' }) =>
          verb !== 'WATCH' && (plurals.has(resource) || childResources.has(resource))
            ? `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`
            : undefined,
      ),
    hookCalls: async () =>
      new Counts().add(
        samplesOf(await hookPage(), 'gatehouse_hooks_requests_total'),
        ({ hook, kind, code }) => `${hook} ${kind}${code === '200' ? '' : ` ${code}`}`,
      ),
    syncTimes: async (wanted) =>
      new Counts().add(
        samplesOf(await hookPage(), 'gatehouse_hooks_request_duration_seconds_bucket'),
        ({ hook, kind, le }) => (hook === 'sync' && (wanted ?? kind) === kind ? le : undefined),
      ),
  }
}

function apiPage({ url, authority, token }: KubeApiserver): Promise<string> {
  const options = { ca: readFileSync(authority), headers: { authorization: `Bearer ${token}` } }
  return new Promise((resolve, reject) => {
    get(`${url}/metrics`, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('error', reject).on('end', () => resolve(text))
    }).on('error', reject)
  })
}

const atOnce = 8

export async function create(api: ApiClient, manifests: readonly Manifest[]): Promise<void> {
  const queue = manifests.values()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const manifest of queue) {
        const { kind, metadata } = manifest
        const path = `/apis/gatehouse.dev/v1beta1/namespaces/${metadata.namespace}/${pluralOf(kind)}`
        const { status, body } = await api.send('POST', path, manifest)
        if (status >= 300) throw new Error(`${kind} ${metadata.name}: ${status} ${JSON.stringify(body)}`)
      }
    }),
  )
}

export interface Listed {
  readonly kind?: string
  readonly metadata: { readonly name: string; readonly namespace: string; readonly generation?: number }
  readonly status?: { readonly observedGeneration?: number }
}

/** Calls `each` for every object of a resource, page by page. */
export async function forEach(api: ApiClient, path: string, each: (object: Listed) => void): Promise<void> {
  let more = ''
  do {
    const { status, body } = await api.send('GET', `${path}?limit=250${more}`)
    const { items, metadata } = body as { items?: readonly Listed[]; metadata?: { continue?: string } }
    if (!items) throw new Error(`${path}: ${status}`)
    for (const item of items) each(item)
    more = metadata?.continue ? `&continue=${encodeURIComponent(metadata.continue)}` : ''
  } while (more !== '')
}

/** Returns the number of our objects that were not processed since their last change. */
export async function behind(api: ApiClient): Promise<number> {
  let count = 0
  for (const plural of plurals)
    await forEach(api, `/apis/gatehouse.dev/v1beta1/${plural}`, ({ metadata, status }) => {
      if (status?.observedGeneration !== metadata.generation) count += 1
    })
  return count
}
