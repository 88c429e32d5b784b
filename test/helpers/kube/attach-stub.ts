/**
 * An API server that can be broken: one pod whose container is a local process, the ConfigMap of the proxy's record,
 * and ways to break each of them. Tests of correct behavior use the real API server.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { type AttachedBridge, startAttachedBridge } from '../../../runtime/proxy/index.ts'
import { makeFetch, silentLog } from '../../../runtime/net/index.ts'
import { AttachServer, ContainerStreams } from './attach-server.ts'

type Fields = Record<string, unknown>

interface Patch {
  readonly data: Record<string, string>
  readonly metadata?: { readonly resourceVersion?: string }
}

interface StubOptions {
  /** Arguments of node. */
  readonly program: readonly string[]
}

class ApiStub {
  readonly requests: string[] = []
  readonly record: Record<string, string> = {}
  /** Waiting state of the container when no process runs. */
  waiting: Fields = { reason: 'ContainerCreating' }
  /** When set, attach gets this response. */
  refusal: { readonly code: number; readonly message: string } | undefined
  /** Status of the response to a GET of the pod. */
  podStatus = 200
  /** When set, writes of the ConfigMap fail. */
  recordStatus = 200
  uid = 'pod-1'
  restarts = 0
  #run = 0
  #version = 1
  #child: ChildProcess | undefined
  #streams: ContainerStreams | undefined
  readonly #attach = new AttachServer()
  readonly #program: readonly string[]
  readonly #server = createServer((req, res) => void this.#answer(req, res))

  constructor({ program }: StubOptions) {
    this.#program = program
    this.#server.on('upgrade', (req, socket, head) => {
      this.requests.push(`UPGRADE ${req.url ?? ''}`)
      if (this.refusal) this.#attach.refuse(socket, this.refusal.code, this.refusal.message)
      else if (!this.#streams) this.#attach.refuse(socket, 400, 'container mcp is not running')
      else this.#attach.upgrade(req, socket, head, this.#streams)
    })
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`
  }

  get streams(): ContainerStreams {
    if (!this.#streams) throw new Error('no container runs')
    return this.#streams
  }

  get child(): ChildProcess {
    if (!this.#child) throw new Error('no container runs')
    return this.#child
  }

  /** Starts the container. */
  start(): void {
    this.#run++
    const child = spawn(process.execPath, this.#program, { stdio: 'pipe' })
    this.#child = child
    this.#streams = new ContainerStreams(child)
  }

  /** Ends the container's process without a restart. */
  async kill(): Promise<void> {
    const { child } = this
    const closed = child.exitCode === null && child.signalCode === null ? once(child, 'close') : undefined
    child.kill('SIGKILL')
    await closed
    this.#child = undefined
    this.#streams = undefined
  }

  /** Restarts the container, like a kubelet. */
  async restart(): Promise<void> {
    await this.kill()
    this.restarts++
    this.start()
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    this.requests.push(`${req.method ?? ''} ${req.url ?? ''}`)
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    const isPod = req.url === '/api/v1/namespaces/ns/pods/server-0'
    const isRecord = req.url === '/api/v1/namespaces/ns/configmaps/report'
    const code = isPod ? this.podStatus : isRecord ? this.recordStatus : 404
    if (code !== 200) return send(res, code, { kind: 'Status', status: 'Failure', message: `told ${code}` })
    if (isPod) return send(res, 200, this.#pod())
    if (req.method === 'PATCH') {
      const { data, metadata } = JSON.parse(Buffer.concat(parts).toString()) as Patch
      const asked = metadata?.resourceVersion
      if (asked !== undefined && asked !== String(this.#version))
        return send(res, 409, { kind: 'Status', status: 'Failure', message: 'the object has been modified' })
      this.#version++
      Object.assign(this.record, data)
    }
    const metadata = { resourceVersion: String(this.#version) }
    send(res, 200, { kind: 'ConfigMap', metadata, data: this.record })
  }

  #pod(): Fields {
    const state = this.#child ? { running: {} } : { waiting: this.waiting }
    const status = { name: 'mcp', state, restartCount: this.restarts, containerID: `stub://${this.#run}` }
    const labels = { 'controller-revision-hash': 'server-one' }
    return { metadata: { name: 'server-0', uid: this.uid, labels }, status: { containerStatuses: [status] } }
  }

  async close(): Promise<void> {
    if (this.#child) await this.kill()
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

function send(res: ServerResponse, code: number, body: Fields): void {
  res.writeHead(code, { 'Content-Type': 'application/json' })
  res.end(JSON.stringify(body))
}

export const sessionProgram = ['test/helpers/mcp/fixture-server/stdio-program.ts', 'session']

/** Starts a stub with a running container. */
export async function startApiStub(
  t: Test,
  program: readonly string[] = sessionProgram,
): Promise<{ readonly stub: ApiStub; readonly baseUrl: string }> {
  const stub = new ApiStub({ program })
  const baseUrl = await stub.listen()
  t.teardown(() => stub.close())
  stub.start()
  return { stub, baseUrl }
}

type More = Partial<Parameters<typeof startAttachedBridge>[0]>

/** Starts a bridge that is attached through the stub, with short retry intervals. */
export async function attachedBridge(t: Test, baseUrl: string, more: More = {}): Promise<AttachedBridge> {
  const bridge = await startAttachedBridge({
    api: { baseUrl, token: () => 'token', fetch: makeFetch() },
    target: { namespace: 'ns', pod: 'server-0', container: 'mcp' },
    report: 'report',
    name: 'notes',
    pod: 'proxy-a',
    host: '127.0.0.1',
    port: 0,
    health: { host: '127.0.0.1', port: 0 },
    log: silentLog,
    onLine: () => undefined,
    retryMs: 20,
    lookMs: 100,
    ...more,
  })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= bridge.close())
  t.teardown(close)
  return { ...bridge, close }
}

export async function isReady({ healthPort }: AttachedBridge): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${healthPort}/readyz`)
  await response.body?.cancel()
  return response.status === 200
}
