/**
 * Client for an embedding service. Sends texts and receives vectors, using one of two protocols.
 *
 * `tei`: POST {base}/embed returns vectors. GET {base}/info returns the model and the batch limit. `compat`: POST
 * {base}/embeddings with the model's name and a bearer token. A call sends its requests one after another, and the
 * first failure ends the call. The operator configures the address, which may be private. Responses are limited in size
 * and time. Every failure is an EmbeddingError. The error's message is meant for the log, never for clients, and
 * contains no request data.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.embeddingProvider.
 */
import { ModuleError } from '../../../../schemas/index.ts'
import { type Fetch, FetchRefusedError, makeFetch } from '../../../net/index.ts'
import type { ServiceSettings } from './settings.ts'

export class EmbeddingError extends ModuleError {
  /** True if the service is available but rejects the text. */
  readonly ofInput: boolean

  constructor(message: string, options: { cause?: unknown; ofInput?: boolean } = {}) {
    super(message, { cause: options.cause })
    this.ofInput = options.ofInput ?? false
  }
}

export interface ServiceFacts {
  /** The current model. Undefined if the service does not report its model. */
  readonly model: string | undefined
  /** Maximum number of texts in a request. */
  readonly batch: number
}

export interface EmbeddingService {
  /** Reads the service's facts. Rejects only with the signal's reason. */
  facts(signal: AbortSignal): Promise<ServiceFacts>
  /** Returns one vector for each text, in order. Rejects with EmbeddingError or the signal's reason. */
  embed(texts: readonly string[], batch: number, signal: AbortSignal): Promise<Float32Array[]>
  close(): Promise<void>
}

/** Batch limit for a `tei` service that does not report its own limit. */
const defaultBatch = 32
/** Larger responses would take too long to parse. */
const maxBatch = 64
const maxResponseBytes = 16 * 1_048_576
const maxConnections = 32
const maxDimensions = 16_384
/**
 * Maximum length of a text to embed. Longer texts are truncated, because `compat` services reject them. The start of a
 * description is sufficient to explain a tool's purpose.
 */
const maxTextChars = 8_000

export function openEmbeddingService(settings: ServiceSettings): EmbeddingService {
  const fetch = makeFetch({
    timeoutMs: settings.timeoutMs,
    maxBytes: maxResponseBytes,
    maxRedirects: 0,
    allowHttp: true,
    headersTimeoutMs: 0,
    connections: maxConnections,
  })
  const codec = settings.protocol === 'tei' ? tei : compat
  return {
    async facts(signal) {
      if (settings.protocol === 'compat') return { model: settings.model, batch: maxBatch }
      try {
        return readInfo(
          await call(fetch, `${settings.url}/info`, { headers: { accept: 'application/json' } }, signal),
        )
      } catch (error) {
        if (signal.aborted) throw error
        return { model: undefined, batch: defaultBatch }
      }
    },
    async embed(texts, batch, signal) {
      const vectors: Float32Array[] = []
      for (let from = 0; from < texts.length; from += batch) {
        const inputs = texts
          .slice(from, from + batch)
          .map((text) => text.slice(0, maxTextChars).toWellFormed())
        const init = {
          method: 'POST',
          headers: headersOf(settings),
          body: JSON.stringify(codec.request(inputs, settings)),
        }
        vectors.push(
          ...codec.read(await call(fetch, `${settings.url}${codec.path}`, init, signal), inputs.length),
        )
      }
      if (vectors.some(({ length }) => length !== vectors[0]?.length))
        throw new EmbeddingError('the embedding service returned vectors of different lengths')
      return vectors
    },
    close: () => fetch.close(),
  }
}

/** Configured headers never override the headers that this module sets. */
function headersOf({ headers, apiKey }: ServiceSettings): Record<string, string> {
  const own = Object.entries(headers).filter(([name]) => !/^(?:authorization|content-type)$/i.test(name))
  return {
    accept: 'application/json',
    ...Object.fromEntries(own),
    'content-type': 'application/json',
    ...(apiKey ? { authorization: `Bearer ${apiKey.reveal()}` } : {}),
  }
}

async function call(
  fetch: Fetch,
  url: string,
  init: { method?: string; headers: Record<string, string>; body?: string },
  signal: AbortSignal,
): Promise<unknown> {
  let response: Response
  let text: string
  try {
    response = await fetch(url, { ...init, signal })
    text = await response.text()
  } catch (error) {
    if (signal.aborted) throw error
    throw new EmbeddingError(
      error instanceof FetchRefusedError
        ? `the embedding service: ${error.message}`
        : 'the embedding service cannot be reached',
      { cause: error },
    )
  }
  if (response.status !== 200)
    throw new EmbeddingError(`the embedding service returned status ${response.status}`, {
      ofInput: [400, 413, 422].includes(response.status),
    })
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new EmbeddingError('the embedding service did not return JSON', { cause: error })
  }
}

interface Codec {
  readonly path: string
  request(inputs: readonly string[], settings: ServiceSettings): unknown
  /** Throws EmbeddingError unless the response contains one vector for each of `count` inputs. */
  read(response: unknown, count: number): Float32Array[]
}

const tei: Codec = {
  path: '/embed',
  request: (inputs) => ({ inputs, truncate: true }),
  read(response, count) {
    if (!Array.isArray(response) || response.length !== count) throw wrongCount(response, count)
    return response.map(readVector)
  },
}

const compat: Codec = {
  path: '/embeddings',
  request: (input, { model }) => ({ model, input, encoding_format: 'float' }),
  read(response, count) {
    const data = memberOf(response, 'data')
    if (!Array.isArray(data) || data.length !== count) throw wrongCount(data, count)
    const vectors: (Float32Array | undefined)[] = Array.from({ length: count })
    for (const item of data) {
      const index = memberOf(item, 'index')
      if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count)
        throw new EmbeddingError('the embedding service returned an index out of range')
      vectors[index] = readVector(memberOf(item, 'embedding'))
    }
    return vectors.map((vector) => {
      if (!vector) throw new EmbeddingError('the embedding service returned no vector for an input')
      return vector
    })
  },
}

function readInfo(response: unknown): ServiceFacts {
  const model = memberOf(response, 'model_id')
  const batch = memberOf(response, 'max_client_batch_size')
  return {
    model: typeof model === 'string' && model !== '' ? model : undefined,
    batch: typeof batch === 'number' && batch >= 1 ? Math.min(Math.floor(batch), maxBatch) : defaultBatch,
  }
}

/** Normalizes a vector to length one, so a dot product is the cosine. A zero vector stays zero. */
function readVector(value: unknown): Float32Array {
  if (!Array.isArray(value) || value.length === 0 || value.length > maxDimensions)
    throw new EmbeddingError('the embedding service returned an invalid vector')
  const vector = new Float32Array(value.length)
  let square = 0
  for (const [i, item] of value.entries()) {
    if (typeof item !== 'number' || !Number.isFinite(item))
      throw new EmbeddingError('the embedding service returned a vector that contains an invalid number')
    vector[i] = item
    square += item * item
  }
  const length = Math.sqrt(square)
  if (!Number.isFinite(length))
    throw new EmbeddingError('the embedding service returned a vector with an infinite norm')
  if (length > 0) for (let i = 0; i < vector.length; i++) vector[i] = (vector[i] ?? 0) / length
  return vector
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && name in value
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined
}

function wrongCount(value: unknown, count: number): EmbeddingError {
  const found = Array.isArray(value) ? `${value.length} vectors` : 'no vectors'
  return new EmbeddingError(`the embedding service returned ${found} for ${count} inputs`)
}
