/**
 * The OpenAPI documents of all backends, and the tools that they produce.
 *
 * An unusable document never changes the tools that are served. The tools of the last usable document stay in
 * use, and the reason is reported. They also survive a changed source (such as a new digest), provided that the other
 * settings of the conversion are the same: tools that the new settings exclude must not stay.
 */
import { createHash } from 'node:crypto'
import type { AddressPolicy, OpenApiBackend } from '../../../../schemas/index.ts'
import { watchFile } from '../../../config/index.ts'
import { abortable, type AnySignal } from '../../../net/index.ts'
import type { Events } from '../../../observe/index.ts'
import { type ConvertedTools, Converter, DocumentRejected } from './convert.ts'
import { DocumentUnusable } from './document-unusable.ts'
import { readDocument } from './source.ts'

/** A failed document is read again after this time, when it is needed. */
const retryMs = 10_000
/** A rejected document is not converted again within this time, because a conversion can use much CPU time. */
const rejectedMs = 300_000

interface Kept {
  readonly settings: string
  readonly tools: ConvertedTools
}

export class RestDocuments {
  readonly #events: Events
  readonly #now: () => number
  readonly #converter = new Converter()
  /** Tools of the last usable document, keyed by backend. */
  readonly #kept = new Map<string, Kept>()

  constructor(events: Events, now: () => number) {
    this.#events = events
    this.#now = now
  }

  open(backend: string, options: DocumentOptions): RestDocument {
    const { apiKeyQuery, operations, overrides, response } = options.openapi
    const settings = {
      configuredHeaders: options.configuredHeaders,
      ...(apiKeyQuery && { apiKeyQuery }),
      ...(operations && { operations }),
      ...(overrides && { overrides }),
      ...(response && { response }),
    }
    const key = JSON.stringify(settings)
    const kept = this.#kept.get(backend)
    return new RestDocument({
      ...options,
      now: this.#now,
      tools: kept?.settings === key ? kept.tools : undefined,
      convert: (text, signal) => this.#converter.convert(backend, { text, settings }, signal),
      onConverted: (tools) => {
        this.#kept.set(backend, { settings: key, tools })
        this.#events.emit('openapi_document', {
          backend,
          tools: tools.tools.length,
          skipped: tools.skipped,
          skipped_operations: tools.skippedLines,
          unused_settings: tools.unused,
          isServing: true,
        })
        this.#events.emit('openapi_settings_unused', { backend, settings: tools.unused })
      },
      onRejected: (reason, isServing, err) =>
        this.#events.emit('openapi_document', { backend, reason, isServing, err }),
    })
  }

  /** Drops the tools of backends that no longer exist. */
  retain(backends: ReadonlySet<string>): void {
    for (const name of this.#kept.keys())
      if (!backends.has(name)) {
        this.#kept.delete(name)
        this.#events.emit('openapi_document', { backend: name, isServing: false })
        this.#events.emit('openapi_settings_unused', { backend: name, settings: [] })
      }
  }

  async close(): Promise<void> {
    await this.#converter.close()
  }
}

export interface DocumentOptions {
  readonly openapi: OpenApiBackend
  readonly addresses: AddressPolicy
  /** Names of the headers that the gateway sets. The tools have no arguments for these headers. */
  readonly configuredHeaders: readonly string[]
  /** Called when a changed document has changed the tools. */
  readonly onChange: () => void
}

interface DocumentParts extends DocumentOptions {
  readonly now: () => number
  readonly tools: ConvertedTools | undefined
  readonly convert: (text: string, signal: AbortSignal) => Promise<ConvertedTools>
  readonly onConverted: (tools: ConvertedTools) => void
  /** `cause` is undefined if the reason describes the failure completely. */
  readonly onRejected: (reason: string, isServing: boolean, cause: unknown) => void
}

/** The document of one backend. */
export class RestDocument {
  readonly #parts: DocumentParts
  readonly #closing = new AbortController()
  #stopWatching: (() => void) | undefined
  #tools: ConvertedTools | undefined
  #failure: { readonly error: DocumentUnusable; readonly at: number } | undefined
  /** The last document that was rejected, and when it was converted. */
  #rejected: { readonly digest: string; readonly reason: string; readonly at: number } | undefined
  #loading: Promise<void> | undefined
  /** True if the file changed while it was being read. */
  #isOutdated = false

  constructor(parts: DocumentParts) {
    this.#parts = parts
    this.#tools = parts.tools
    void this.#load()
  }

  /** The current tools. Undefined until a document could be used. */
  get current(): ConvertedTools | undefined {
    return this.#tools
  }

  /** Waits for the first usable document. Rejects with DocumentUnusable or with the signal's reason. */
  async ready(signal: AnySignal): Promise<ConvertedTools> {
    if (this.#tools) {
      if (this.#failure && this.#mayRetry(this.#failure)) void this.#load()
      return this.#tools
    }
    if (this.#failure && !this.#loading && !this.#mayRetry(this.#failure)) throw this.#failure.error
    await abortable(this.#load(), signal)
    if (this.#tools) return this.#tools
    throw this.#failure?.error ?? new DocumentUnusable('the server is shutting down')
  }

  #mayRetry({ at }: { readonly at: number }): boolean {
    return this.#parts.now() - at >= retryMs
  }

  /** Watches the file. If its folder does not exist yet, the next attempt to read the file tries again. */
  #watch(): void {
    const { path } = this.#parts.openapi.document
    if (path === undefined || this.#stopWatching) return
    try {
      this.#stopWatching = watchFile(path, () => {
        this.#isOutdated = this.#loading !== undefined
        void this.#load()
      })
    } catch {
      // Reading the file fails too, and reports the problem.
    }
  }

  #load(): Promise<void> {
    this.#loading ??= this.#loadNow().finally(() => {
      this.#loading = undefined
      if (!this.#isOutdated) return
      this.#isOutdated = false
      void this.#load()
    })
    return this.#loading
  }

  async #loadNow(): Promise<void> {
    const { openapi, addresses, onConverted, onRejected, onChange, now } = this.#parts
    const { signal } = this.#closing
    if (signal.aborted) return
    this.#watch()
    try {
      const tools = await this.#converted(await readDocument(openapi.document, addresses, signal))
      if (signal.aborted) return
      const isChanged = this.#tools !== undefined && !isSame(this.#tools, tools)
      this.#tools = tools
      this.#failure = undefined
      onConverted(tools)
      if (isChanged) onChange()
    } catch (error) {
      if (signal.aborted) return
      const isRejected = error instanceof DocumentRejected
      const reason = isRejected ? error.message : 'the document could not be converted'
      this.#failure = { error: new DocumentUnusable(reason), at: now() }
      onRejected(reason, this.#tools !== undefined, isRejected ? error.cause : error)
    }
  }

  async #converted(text: string): Promise<ConvertedTools> {
    const { convert, now } = this.#parts
    const digest = createHash('sha256').update(text).digest('hex')
    if (this.#rejected?.digest === digest && now() - this.#rejected.at < rejectedMs)
      throw new DocumentRejected(this.#rejected.reason)
    try {
      return await convert(text, this.#closing.signal)
    } catch (error) {
      if (error instanceof DocumentRejected) this.#rejected = { digest, reason: error.message, at: now() }
      throw error
    }
  }

  close(): void {
    this.#stopWatching?.()
    this.#closing.abort(new Error('closed'))
  }
}

function isSame(a: ConvertedTools, b: ConvertedTools): boolean {
  return (
    a.tools.length === b.tools.length &&
    a.tools.every(({ definition, plan }, i) => {
      const other = b.tools[i]
      return definition === other?.definition && plan === other.plan
    })
  )
}
