/**
 * The network of the one node: a network namespace per pod, addresses of Services that lead to ready pods, and names.
 *
 * Runs inside its own network namespace, so it cannot conflict with the machine's network or another test. It forwards
 * connections instead of installing packet rules like kube-proxy: a connection to a Service's address reaches this
 * process, which connects to a ready pod of its EndpointSlices.
 */
import { execFileSync } from 'node:child_process'
import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, connect, type Server, type Socket } from 'node:net'
import { dnsAddress, nodeAddress } from '../service-range.ts'
import type { KubeObject } from './api.ts'

export interface Service extends KubeObject {
  readonly spec: {
    readonly clusterIP?: string
    readonly ports?: readonly { readonly name?: string; readonly port: number }[]
    readonly sessionAffinity?: string
  }
}

export interface EndpointSlice extends KubeObject {
  readonly endpoints?: readonly {
    readonly addresses: readonly string[]
    readonly conditions?: { readonly ready?: boolean }
  }[]
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[] | null
}

export interface PodNetwork {
  readonly address: string
  /** Path of the network namespace. */
  readonly namespace: string
  remove(): void
}

const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] })

/** Assigns all addresses of the Services' range to this node, and makes cluster names resolvable for this process. */
export function prepareNode(folder: string): void {
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', '/run'])
  ip('link', 'set', 'lo', 'up')
  ip('addr', 'add', nodeAddress, 'dev', 'lo')
  writeFileSync(`${folder}/resolv.conf`, resolvConf('default'))
  execFileSync('mount', ['--bind', `${folder}/resolv.conf`, '/etc/resolv.conf'])
}

/** The name server and search path of a pod, as a kubelet writes them. */
export function resolvConf(namespace: string): string {
  const search = [`${namespace}.svc.cluster.local`, 'svc.cluster.local', 'cluster.local'].join(' ')
  return `nameserver ${dnsAddress}\nsearch ${search}\noptions ndots:5\n`
}

let pods = 0

/** Creates a namespace with one interface, whose only neighbour is the node. */
export function addPodNetwork(): PodNetwork {
  pods += 1
  const name = `pod${pods}`
  const at = (offset: number) => `10.88.${(pods * 4) >> 8}.${((pods * 4) & 255) + offset}`
  ip('netns', 'add', name)
  ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
  ip('addr', 'add', `${at(1)}/30`, 'dev', name)
  ip('link', 'set', name, 'up')
  ip('-n', name, 'addr', 'add', `${at(2)}/30`, 'dev', 'eth0')
  ip('-n', name, 'link', 'set', 'lo', 'up')
  ip('-n', name, 'link', 'set', 'eth0', 'up')
  ip('-n', name, 'route', 'add', 'default', 'via', at(1))
  return { address: at(2), namespace: `/run/netns/${name}`, remove: () => ip('netns', 'delete', name) }
}

/**
 * Accepts connections to the addresses of all Services. Call `update` after every change of Services or EndpointSlices.
 */
export class ServiceProxy {
  readonly #services: () => Iterable<Service>
  readonly #slices: () => Iterable<EndpointSlice>
  readonly #apiPort: number
  readonly #listeners = new Map<string, Server>()
  readonly #sockets = new Set<Socket>()

  constructor(services: () => Iterable<Service>, slices: () => Iterable<EndpointSlice>, apiPort: number) {
    this.#services = services
    this.#slices = slices
    this.#apiPort = apiPort
  }

  update(): void {
    const wanted = new Set<string>()
    for (const service of this.#services()) {
      const { clusterIP = 'None', ports = [] } = service.spec
      if (clusterIP === 'None' || clusterIP === '') continue
      for (const { name = '', port } of ports) {
        const key = `${clusterIP} ${port} ${service.metadata.uid}`
        wanted.add(key)
        if (!this.#listeners.has(key)) this.#listeners.set(key, this.#listen(service, name, clusterIP, port))
      }
    }
    for (const [key, server] of this.#listeners) {
      if (wanted.has(key)) continue
      this.#listeners.delete(key)
      server.close()
    }
  }

  close(): void {
    for (const server of this.#listeners.values()) server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #listen(service: Service, portName: string, address: string, port: number): Server {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
      const target = this.#choose(service, portName, client.remoteAddress ?? '0')
      if (!target) {
        client.resetAndDestroy()
        return
      }
      this.#join(client, connect({ ...target, allowHalfOpen: true }))
    })
    server.on('error', () => {})
    return server.listen(port, address)
  }

  #join(client: Socket, pod: Socket): void {
    for (const socket of [client, pod]) {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    }
    client.on('error', () => pod.destroy())
    pod.on('error', () => client.resetAndDestroy())
    client.pipe(pod)
    pod.pipe(client)
  }

  /** Returns a ready pod. With session affinity, one client always gets the same pod. */
  #choose(
    { metadata, spec }: Service,
    portName: string,
    client: string,
  ): { host: string; port: number } | undefined {
    if (metadata.name === 'kubernetes' && metadata.namespace === 'default') {
      return { host: '127.0.0.1', port: this.#apiPort }
    }
    const ready = [...this.#slices()]
      .filter((slice) => slice.metadata.namespace === metadata.namespace)
      .filter((slice) => slice.metadata.labels?.['kubernetes.io/service-name'] === metadata.name)
      .flatMap(({ endpoints = [], ports }) => {
        const port = ports?.find(({ name = '' }) => name === portName)?.port
        if (port === undefined) return []
        return endpoints
          .filter(({ conditions }) => conditions?.ready)
          .flatMap(({ addresses }) => addresses.map((host) => ({ host, port })))
      })
    const affinity = spec.sessionAffinity === 'ClientIP'
    const pick = affinity
      ? client.split('.').reduce((sum, part) => sum * 31 + Number(part), 7)
      : Math.random() * 997
    return ready[Math.floor(pick) % Math.max(ready.length, 1)]
  }
}

/** Resolves `<service>.<namespace>.svc.cluster.local`. Other names do not exist. */
export async function startDns(services: () => Iterable<Service>): Promise<DatagramSocket> {
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const response = answerTo(query, services)
    if (response) socket.send(response, from.port, from.address)
  })
  socket.bind(53, dnsAddress)
  await once(socket, 'listening')
  return socket
}

/** RFC 1035: one question, at most one A record. */
function answerTo(query: Buffer, services: () => Iterable<Service>): Buffer | undefined {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase())
    at += length + 1
  }
  const end = at + 5
  if (end > query.length) return undefined
  const type = query.readUInt16BE(at + 1)
  const [name, namespace, ...rest] = labels
  const found =
    rest.join('.') === 'svc.cluster.local'
      ? [...services()].find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
      : undefined
  const address = found?.spec.clusterIP
  const record = type === 1 && address && address !== 'None' ? aRecord(address) : undefined
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  // An authoritative response; code 3 means that the name does not exist.
  head.writeUInt16BE(0x8580 | (found ? 0 : 3), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(record ? 1 : 0, 6)
  return Buffer.concat([head, query.subarray(12, end), ...(record ? [record] : [])])
}

function aRecord(address: string): Buffer {
  // A pointer to the name in the question, type A, class IN, 5 seconds, four bytes.
  const head = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4]
  return Buffer.from([...head, ...address.split('.').map(Number)])
}
