/**
 * A real embedding service on a loopback port, in both protocols. It hashes words, so texts with common words or
 * synonyms have similar vectors. Returns errors on demand.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'
import type { AddressInfo } from 'node:net'

export interface EmbedRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly texts: readonly string[]
  readonly body: Record<string, unknown>
}

export type Failure =
  | { readonly kind: 'status'; readonly status: number }
  /** Responds once `until` has resolved. */
  | { readonly kind: 'slow'; readonly until: Promise<void> }
  | { readonly kind: 'cut' | 'count' | 'length' | 'huge' | 'text' | 'numbers' | 'index' }

export interface EmbeddingService {
  /** Base URL for `tei`; the `compat` protocol is at `/v1`. */
  readonly url: string
  /** Requests for vectors, in order. */
  readonly requests: EmbedRequest[]
  /** Model in the response of `/info`. Undefined: no response. */
  model: string | undefined
  /** Called before each response. */
  onRequest: (request: EmbedRequest) => Failure | undefined
  maxBatch: number
  dimensions: number
  /** All embedded texts. */
  texts(): string[]
  /** Resolves with the next request for vectors that satisfies `wanted`. */
  next(wanted?: (request: EmbedRequest) => boolean): Promise<EmbedRequest>
  close(): Promise<void>
}

export interface EmbeddingServiceOptions {
  readonly port?: number
  /** Replacements of words. */
  readonly synonyms?: Readonly<Record<string, string>>
}

const stop = new Set(['name', 'description', 'a', 'an', 'the', 'of', 'to', 'in', 'and', 'for'])

export async function startEmbeddingService(
  options: EmbeddingServiceOptions = {},
): Promise<EmbeddingService> {
  const waiting = new Set<(request: EmbedRequest) => void>()
  const service: EmbeddingService = {
    url: '',
    requests: [],
    model: 'hash-1',
    onRequest: () => undefined,
    maxBatch: 4,
    dimensions: 256,
    texts: () => service.requests.flatMap(({ texts }) => texts),
    next: (wanted = () => true) =>
      new Promise((resolve) => {
        const look = (request: EmbedRequest): void => {
          if (!wanted(request)) return
          waiting.delete(look)
          resolve(request)
        }
        waiting.add(look)
      }),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  async function response(
    path: string,
    headers: IncomingHttpHeaders,
    text: string,
    res: ServerResponse,
  ): Promise<void> {
    if (path === '/info') {
      if (service.model === undefined) res.writeHead(503).end()
      else send(res, { model_id: service.model, max_client_batch_size: service.maxBatch })
      return
    }
    const body = JSON.parse(text) as Record<string, unknown>
    const texts = (body['inputs'] ?? body['input']) as string[]
    const request = { path, headers, texts, body }
    service.requests.push(request)
    const failure = service.onRequest(request)
    for (const look of waiting) look(request)
    if (failure?.kind === 'slow') await failure.until
    if (failure?.kind === 'status') {
      res.writeHead(failure.status, { 'content-type': 'text/plain' }).end('a text of the service')
      return
    }
    if (failure?.kind === 'cut') {
      res.destroy()
      return
    }
    if (failure?.kind === 'text') {
      res.writeHead(200).end('no JSON')
      return
    }
    if (failure?.kind === 'huge') {
      res.writeHead(200, { 'content-type': 'application/json' })
      const part = `[${'0,'.repeat(500_000)}0]`
      await pipeline(repeated(part), res).catch(() => {})
      return
    }
    const vectors = texts.map((one) => vectorOf(one, failure?.kind === 'length' ? 3 : service.dimensions))
    if (failure?.kind === 'count') vectors.pop()
    const shown = failure?.kind === 'numbers' ? vectors.map((vector) => vector.map(String)) : vectors
    if (path === '/embed') return send(res, shown)
    const data = shown.map((embedding, index) => ({ index, embedding, object: 'embedding' })).toReversed()
    if (failure?.kind === 'index') data.forEach((item) => (item.index = 0))
    send(res, { object: 'list', data, model: body['model'] })
  }

  function vectorOf(text: string, dimensions: number): number[] {
    const vector = Array.from({ length: dimensions }, () => 0)
    for (const word of text.toLowerCase().split(/[^a-z0-9]+/)) {
      const known = options.synonyms?.[word] ?? word
      if (known === '' || stop.has(known)) continue
      const at = (hashOf(known) + hashOf(service.model ?? '')) % dimensions
      vector[at] = (vector[at] ?? 0) + 1
    }
    return vector
  }

  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const path = (req.url ?? '/').replace(/^\/v1\//, '/')
      response(path, req.headers, Buffer.concat(chunks).toString(), res).catch(() => res.destroy())
    })
  })
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  Object.assign(service, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  return service
}

function send(res: ServerResponse, value: unknown): void {
  res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (const char of text) hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193) >>> 0
  return hash
}

function* repeated(part: string): Generator<string> {
  for (;;) yield part
}
