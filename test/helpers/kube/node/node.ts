/**
 * The process of one node: it runs every pod of the API server, accepts connections to the addresses of Services, and
 * resolves names.
 *
 * `startCluster` starts it as a separate program with a channel, because tests block while they wait for kubectl. It
 * responds to the messages `pods` and `output`, and ends when the channel closes.
 */
import { join } from 'node:path'
import { KubeApi, KubeApiError, type KubeObject, Store } from './api.ts'
import type { Image } from './images.ts'
import { startKubelet } from './kubelet.ts'
import { type EndpointSlice, type Service, ServiceProxy, startDns } from './network.ts'
import { PodRunner } from './pod.ts'
import type { Pod } from './pod-spec.ts'
import type { Data } from './volumes.ts'
import { apiAddress } from '../service-range.ts'

export interface NodeOptions {
  readonly kube: { readonly url: string; readonly token: string; readonly authority: string }
  readonly folder: string
  readonly images: readonly (readonly [name: string, image: Image])[]
}

const nodeName = 'local'

async function start({ kube, folder, images }: NodeOptions): Promise<ReadonlyMap<string, PodRunner>> {
  const api = new KubeApi(kube)
  await api.send('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } })
  const runners = new Map<string, PodRunner>()
  const runnerOf = (namespace: string, name: string) =>
    [...runners.values()].findLast(
      ({ pod: { metadata } }) => metadata.namespace === namespace && metadata.name === name,
    )
  await startKubelet(
    api,
    nodeName,
    (namespace, name, container) => runnerOf(namespace, name)?.streams(container),
    (namespace, name) => runnerOf(namespace, name)?.output(),
  )
  const wake = ({ metadata }: KubeObject) => {
    for (const runner of runners.values()) {
      if (runner.pod.metadata.namespace === metadata.namespace) runner.refresh()
    }
  }
  const configMaps = new Store<Data>(api, '/api/v1/configmaps', wake)
  const secrets = new Store<Data>(api, '/api/v1/secrets', wake)
  const services = new Store<Service>(api, '/api/v1/services', () => proxy.update())
  const slices = new Store<EndpointSlice>(api, '/apis/discovery.k8s.io/v1/endpointslices', () => {})
  const proxy = new ServiceProxy(
    () => services.objects.values(),
    () => slices.objects.values(),
    Number(new URL(kube.url).port),
  )
  const parts = {
    api,
    folder: join(folder, 'pods'),
    images: new Map(images),
    env: { KUBERNETES_SERVICE_HOST: apiAddress, KUBERNETES_SERVICE_PORT: '443' },
    configMap: (namespace: string, name: string) => configMaps.get(namespace, name),
    secret: (namespace: string, name: string) => secrets.get(namespace, name),
  }
  const pods = new Store<Pod>(api, '/api/v1/pods', (pod) => {
    const { uid, namespace, name, deletionTimestamp } = pod.metadata
    const runner = runners.get(uid)
    const gone = !pods.get(namespace, name) || deletionTimestamp !== undefined
    if (runner && gone) void runner.end().finally(() => runners.delete(uid))
    else if (!runner && !gone && !pod.spec.nodeName) void bind(api, pod)
    else if (!runner && !gone && !isOver(pod)) runners.set(uid, new PodRunner(pod, parts))
  })
  await startDns(() => services.objects.values())
  for (const store of [configMaps, secrets, services, slices, pods]) await store.start()
  return runners
}

function isOver({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}

/** Schedules a pod onto the only node. */
async function bind(api: KubeApi, { metadata: { namespace, name, uid } }: Pod): Promise<void> {
  const target = { apiVersion: 'v1', kind: 'Node', name: nodeName }
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, uid }, target }
  try {
    await api.send('POST', `/api/v1/namespaces/${namespace}/pods/${name}/binding`, binding)
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error
  }
}

process.once('message', (options: NodeOptions) => {
  void start(options).then((runners) => {
    process.on('message', (what) => {
      const all = [...runners.values()]
      if (what === 'pods')
        process.send?.(all.map(({ pod }) => `${pod.metadata.namespace}/${pod.metadata.name}`))
      else process.send?.(all.map((runner) => runner.output()).join('\n'))
    })
    process.send?.('ready')
  })
})
process.once('disconnect', () => process.exit())
