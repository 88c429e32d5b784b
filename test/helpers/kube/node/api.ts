/**
 * Requests of the node helper to the API server: single requests, and stores of objects that follow a watch.
 *
 * When a watch ends, a list and a new watch follow. Other requests are not retried, because the server is on this
 * machine.
 */
import { readFileSync } from 'node:fs'
import { Agent, request, type RequestOptions } from 'node:https'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import type { KubeApiserver } from '../apiserver.ts'

export interface KubeObject {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly resourceVersion: string
    readonly labels?: Readonly<Record<string, string>>
    readonly deletionTimestamp?: string
    readonly deletionGracePeriodSeconds?: number
  }
  readonly [member: string]: unknown
}

/** A response that is not a success. Callers expect `status` 404 and 409. */
export class KubeApiError extends Error {
  readonly status: number
  constructor(status: number, what: string) {
    super(`${what}: the API server answered ${status}`)
    this.status = status
  }
}

export class KubeApi {
  readonly #url: URL
  readonly #token: string
  readonly #agent: Agent

  constructor({ url, token, authority }: Pick<KubeApiserver, 'url' | 'token' | 'authority'>) {
    this.#url = new URL(url)
    this.#token = token
    this.#agent = new Agent({ keepAlive: true, ca: readFileSync(authority) })
  }

  close(): void {
    this.#agent.destroy()
  }

  /** Sends one request with a JSON body. A PATCH is a merge patch. */
  async send(method: string, path: string, body?: unknown): Promise<ReturnType<typeof JSON.parse>> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const text = body === undefined ? '' : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const call = request(this.#options(method, path, type, text), (response) => {
        let received = ''
        response.setEncoding('utf8').on('data', (part: string) => (received += part))
        response.on('end', () => {
          const status = response.statusCode ?? 0
          if (status >= 300) reject(new KubeApiError(status, `${method} ${path}: ${received.slice(0, 300)}`))
          else resolve(JSON.parse(received))
        })
      })
      call.on('error', reject)
      call.end(text)
    })
  }

  /** Calls `onEvent` for every change after `resourceVersion`. Resolves when the watch ends. */
  async watch(
    path: string,
    resourceVersion: string,
    signal: AbortSignal,
    onEvent: (event: { type: string; object: KubeObject }) => void,
  ): Promise<void> {
    const query = `${path}?watch=1&allowWatchBookmarks=true&resourceVersion=${resourceVersion}`
    await new Promise<void>((resolve) => {
      const call = request({ ...this.#options('GET', query, 'application/json'), signal }, (response) => {
        const lines = createInterface(response)
        lines.on('line', (line) => onEvent(JSON.parse(line)))
        lines.once('close', resolve)
        // After a broken watch, the next list contains the missed changes.
        lines.on('error', () => resolve())
        response.on('error', () => resolve())
      })
      // Both the abort and the connection can emit an error.
      call.on('error', () => resolve())
      call.end()
    })
  }

  #options(method: string, path: string, type: string, body = ''): RequestOptions {
    const { hostname, port } = this.#url
    const headers = {
      authorization: `Bearer ${this.#token}`,
      'content-type': type,
      // Node does not set the length of a DELETE's body.
      'content-length': Buffer.byteLength(body),
    }
    return { method, hostname, port, path, headers, agent: this.#agent }
  }
}

/** Watches all objects of one resource. Calls `changed` after every change. */
export class Store<T extends KubeObject> {
  readonly objects = new Map<string, T>()
  readonly #api: KubeApi
  readonly #path: string
  readonly #changed: (object: T) => void
  readonly #stop = new AbortController()

  constructor(api: KubeApi, path: string, changed: (object: T) => void) {
    this.#api = api
    this.#path = path
    this.#changed = changed
  }

  async start(): Promise<void> {
    const version = await this.#list()
    void this.#follow(version)
  }

  stop(): void {
    this.#stop.abort()
  }

  get(namespace: string, name: string): T | undefined {
    return this.objects.get(`${namespace}/${name}`)
  }

  async #list(): Promise<string> {
    const { items, metadata }: { items: T[]; metadata: { resourceVersion: string } } = await this.#api.send(
      'GET',
      this.#path,
    )
    const gone = new Map(this.objects)
    for (const item of items) {
      gone.delete(keyOf(item))
      this.objects.set(keyOf(item), item)
      this.#changed(item)
    }
    for (const [key, item] of gone) {
      this.objects.delete(key)
      this.#changed(item)
    }
    return metadata.resourceVersion
  }

  async #follow(from: string): Promise<void> {
    let version = from
    while (!this.#stop.signal.aborted) {
      await this.#api.watch(this.#path, version, this.#stop.signal, ({ type, object }) => {
        if (type === 'ERROR') return
        version = object.metadata.resourceVersion
        if (type === 'BOOKMARK') return
        const known = object as T
        if (type === 'DELETED') this.objects.delete(keyOf(known))
        else this.objects.set(keyOf(known), known)
        this.#changed(known)
      })
      for (let isListed = false; !isListed && !this.#stop.signal.aborted; ) {
        try {
          version = await this.#list()
          isListed = true
        } catch {
          // The server is restarting, or has ended with the test.
          await pause(200)
        }
      }
    }
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`
}
