/**
 * The life of one pod: address, volumes, init containers, containers with their probes and restarts, and the reported
 * status. Ends when the pod is deleted.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ContainerStreams } from '../attach-server.ts'
import { type KubeApi, KubeApiError } from './api.ts'
import { type RunningContainer, startContainer } from './container.ts'
import type { Image } from './images.ts'
import { addPodNetwork, type PodNetwork, resolvConf } from './network.ts'
import type { Container, Pod, Probe } from './pod-spec.ts'
import { environmentOf, NotThereYet, type Sources, writeVolumes } from './volumes.ts'
import { apiAddress } from '../service-range.ts'

export interface NodeParts {
  readonly api: KubeApi
  readonly folder: string
  readonly images: ReadonlyMap<string, Image>
  /** Environment variables of every container. */
  readonly env: Readonly<Record<string, string>>
  readonly configMap: Sources['configMap']
  readonly secret: Sources['secret']
}

interface State {
  readonly container: Container
  running?: RunningContainer
  startedAt?: string
  ended?: { readonly exitCode: number; readonly finishedAt: string }
  waiting: string
  ready: boolean
  restarts: number
}

/** Limit on the grace period of a pod, for programs that do not stop. */
const longestGraceMs = 5_000
const probePauseMs = 250

export class PodRunner {
  readonly pod: Pod
  readonly #node: NodeParts
  readonly #network: PodNetwork
  readonly #folder: string
  readonly #init: readonly State[]
  readonly #main: readonly State[]
  readonly #tokens = new Map<string, string>()
  readonly #over = new AbortController()
  readonly #startTime = now()
  #changed = Promise.withResolvers<void>()
  #writing: Promise<void> = Promise.resolve()
  #finished: Promise<void> | undefined

  constructor(pod: Pod, node: NodeParts) {
    this.pod = pod
    this.#node = node
    this.#network = addPodNetwork()
    this.#folder = join(node.folder, `${pod.metadata.namespace}_${pod.metadata.name}`)
    mkdirSync(this.#folder, { recursive: true })
    this.#init = (pod.spec.initContainers ?? []).map(stateOf)
    this.#main = pod.spec.containers.map(stateOf)
    void this.#run()
  }

  /** Output of all containers, for failed tests. */
  output(): string {
    const parts = [...this.#init, ...this.#main].map(
      ({ container, waiting, ended }) =>
        `-- ${this.pod.metadata.name} ${container.name} ${waiting} ${JSON.stringify(ended ?? {})}\n${this.#logOf(container)}`,
    )
    return parts.join('\n')
  }

  #logOf(container: Container): string {
    const path = join(this.#folder, container.name, 'log')
    return existsSync(path) ? readFileSync(path, 'utf8').slice(-4000) : ''
  }

  /** Streams of a running container with an open standard input. */
  streams(container: string): ContainerStreams | undefined {
    return this.#main.find((state) => state.container.name === container)?.running?.streams
  }

  /** Updates the volumes after a change of a ConfigMap or Secret. */
  refresh(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
    if (this.#main.some(({ running }) => running)) void this.#write().catch(() => {})
  }

  /** Ends the containers and deletes the pod from the API. */
  end(): Promise<void> {
    this.#finished ??= this.#end()
    return this.#finished
  }

  async #end(): Promise<void> {
    this.#over.abort()
    const seconds = this.pod.spec.terminationGracePeriodSeconds ?? 30
    const grace = Math.min(seconds * 1000, longestGraceMs)
    await Promise.all([...this.#init, ...this.#main].map(async ({ running }) => running?.stop(grace)))
    await this.#writing
    const { namespace, name, uid } = this.pod.metadata
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, preconditions: { uid } }
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`
    await ignoreGone(() => this.#node.api.send('DELETE', path, options))
    this.#network.remove()
  }

  async #run(): Promise<void> {
    const { restartPolicy } = this.pod.spec
    await this.#report()
    await this.#untilThere(() => this.#write())
    for (const state of this.#init) {
      await (restartPolicy === 'Never' ? this.#once(state) : this.#untilDone(state))
      if (state.ended?.exitCode !== 0) return
    }
    await Promise.all(this.#main.map((state) => this.#keep(state)))
  }

  /** Runs a container, and restarts it according to the policy. */
  async #keep(state: State): Promise<void> {
    const { restartPolicy = 'Always' } = this.pod.spec
    while (!this.#over.signal.aborted) {
      const code = await this.#once(state)
      if (restartPolicy === 'Never' || (restartPolicy === 'OnFailure' && code === 0)) return
      await this.#again(state)
    }
  }

  async #untilDone(state: State): Promise<void> {
    while ((await this.#once(state)) !== 0 && !this.#over.signal.aborted) await this.#again(state)
  }

  async #again(state: State): Promise<void> {
    if (this.#over.signal.aborted) return
    state.restarts += 1
    state.waiting = 'CrashLoopBackOff'
    await this.#report()
    await pause(1000, undefined, { signal: this.#over.signal }).catch(() => {})
  }

  /** Runs a container once, to its end. Resolves with its exit code. */
  async #once(state: State): Promise<number> {
    const { container } = state
    const image = this.#node.images.get(container.image)
    if (!image) {
      state.waiting = 'ImagePullBackOff'
      await this.#report()
      await aborted(this.#over.signal)
      return 1
    }
    let env: Record<string, string> = {}
    await this.#untilThere(async () => {
      env = environmentOf(this.pod, container, this.#sources())
    })
    if (this.#over.signal.aborted) return 1
    const resolv = join(this.#folder, 'resolv.conf')
    writeFileSync(resolv, resolvConf(this.pod.metadata.namespace))
    const running = startContainer({
      pod: this.pod,
      container,
      image,
      env: { ...this.#node.env, HOSTNAME: this.pod.metadata.name, ...env },
      network: this.#network.namespace,
      volumes: join(this.#folder, 'volumes'),
      folder: join(this.#folder, container.name),
      resolvConf: resolv,
    })
    Object.assign(state, { running, startedAt: now(), ended: undefined, waiting: '' })
    await this.#report()
    const over = new AbortController()
    const probing = this.#probe(state, AbortSignal.any([over.signal, this.#over.signal]))
    const exitCode = await running.exited
    over.abort()
    await probing
    Object.assign(state, { running: undefined, ready: false, ended: { exitCode, finishedAt: now() } })
    await this.#report()
    return exitCode
  }

  /** Updates `ready` with the results of the probes. */
  async #probe(state: State, signal: AbortSignal): Promise<void> {
    const { startupProbe, readinessProbe } = state.container
    let started = !startupProbe
    while (!signal.aborted) {
      started ||= await this.#responses(state.container, startupProbe)
      const ready = started && (await this.#responses(state.container, readinessProbe))
      if (ready !== state.ready && !signal.aborted) {
        state.ready = ready
        await this.#report()
      }
      await pause(ready ? 4 * probePauseMs : probePauseMs, undefined, { signal }).catch(() => {})
    }
  }

  async #responses(container: Container, probe: Probe | undefined): Promise<boolean> {
    if (!probe) return true
    const { httpGet, tcpSocket } = probe
    const named = httpGet?.port ?? tcpSocket?.port
    const port = container.ports?.find(({ name }) => name === named)?.containerPort ?? Number(named)
    if (!httpGet) return connects(this.#network.address, port)
    const call = httpGet.scheme === 'HTTPS' ? httpsRequest : httpRequest
    return new Promise((resolve) => {
      const target = {
        host: this.#network.address,
        port,
        path: httpGet.path,
        rejectUnauthorized: false,
        timeout: 3000,
      }
      const asked = call(target, (response) => {
        response.resume()
        resolve((response.statusCode ?? 500) < 400)
      })
      asked.on('timeout', () => asked.destroy())
      asked.on('error', () => resolve(false))
      asked.end()
    })
  }

  #sources(): Sources {
    const { configMap, secret } = this.#node
    return {
      configMap,
      secret,
      podAddress: this.#network.address,
      token: (audience, seconds) => this.#token(audience, seconds),
    }
  }

  /** A token that is bound to this pod and ends with it. Requested once, because tests are shorter than an hour. */
  async #token(audience: string | undefined, expirationSeconds = 3600): Promise<string> {
    const known = this.#tokens.get(audience ?? '')
    if (known !== undefined) return known
    const { namespace, name, uid } = this.pod.metadata
    const account = this.pod.spec.serviceAccountName ?? 'default'
    const { status }: { status: { token: string } } = await this.#node.api.send(
      'POST',
      `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`,
      {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {
          ...(audience !== undefined && { audiences: [audience] }),
          expirationSeconds,
          boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
        },
      },
    )
    this.#tokens.set(audience ?? '', status.token)
    return status.token
  }

  #write(): Promise<void> {
    return writeVolumes(this.pod, join(this.#folder, 'volumes'), this.#sources())
  }

  /** Repeats `work` at every change until it has everything it needs. */
  async #untilThere(work: () => Promise<void>): Promise<void> {
    while (!this.#over.signal.aborted) {
      const changed = this.#changed.promise
      try {
        await work()
        return
      } catch (error) {
        if (!(error instanceof NotThereYet)) throw error
        for (const state of this.#main) state.waiting = error.message
        await Promise.race([changed, aborted(this.#over.signal)])
      }
    }
  }

  /** Writes the pod's status. Only one write runs at a time, and the last state wins. */
  #report(): Promise<void> {
    const { namespace, name } = this.pod.metadata
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`
    this.#writing = this.#writing.then(() =>
      ignoreGone(() => this.#node.api.send('PATCH', path, { status: this.#status() })),
    )
    return this.#writing
  }

  #status() {
    const { restartPolicy } = this.pod.spec
    const initialized = this.#init.every(({ ended }) => ended?.exitCode === 0)
    const ready = this.#main.every((state) => state.ready)
    const ends = this.#main.flatMap(({ ended }) => (ended ? [ended] : []))
    const over = restartPolicy !== 'Always' && ends.length === this.#main.length
    const failed = restartPolicy === 'Never' && ends.some(({ exitCode }) => exitCode !== 0)
    const running = this.#main.some(({ startedAt }) => startedAt)
    const phase =
      over && failed
        ? 'Failed'
        : over && ends.every(({ exitCode }) => exitCode === 0)
          ? 'Succeeded'
          : running
            ? 'Running'
            : 'Pending'
    return {
      phase,
      hostIP: apiAddress,
      podIP: this.#network.address,
      podIPs: [{ ip: this.#network.address }],
      startTime: this.#startTime,
      conditions: [
        { type: 'PodScheduled', status: 'True' },
        { type: 'Initialized', status: initialized ? 'True' : 'False' },
        { type: 'ContainersReady', status: ready ? 'True' : 'False' },
        { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: now() },
      ],
      initContainerStatuses: this.#init.map((state) => this.#containerStatus(state)),
      containerStatuses: this.#main.map((state) => this.#containerStatus(state)),
    }
  }

  #containerStatus({ container, running, startedAt, ended, waiting, ready, restarts }: State) {
    const { name, image } = container
    const past = ended && {
      terminated: { ...ended, startedAt, reason: ended.exitCode === 0 ? 'Completed' : 'Error' },
    }
    const state = running
      ? { running: { startedAt } }
      : (past ?? { waiting: { reason: waiting.split(' ')[0] } })
    return {
      name,
      image,
      imageID: '',
      containerID: running ? `test://${this.pod.metadata.uid}/${name}/${restarts}` : '',
      ready,
      started: running !== undefined,
      restartCount: restarts,
      state,
      lastState: running ? past : undefined,
    }
  }
}

function stateOf(container: Container): State {
  return { container, waiting: 'ContainerCreating', ready: false, restarts: 0 }
}

function now(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Ignores 404 responses. Retries while the server is unreachable. */
async function ignoreGone(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work()
      return
    } catch (error) {
      if (error instanceof KubeApiError && error.status < 500) {
        if (error.status === 404 || error.status === 409) return
        throw error
      }
      await pause(200)
    }
  }
}

function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2000 })
    socket.once('connect', () => {
      resolve(true)
      socket.destroy()
    })
    socket.once('timeout', () => socket.destroy())
    socket.once('error', () => {})
    socket.once('close', () => resolve(false))
  })
}
