/**
 * Calls of all replicas: each writes its own to a stream that they share, and reads those of the others into its rings.
 * Whatever a replica wrote stays when it is gone. Calls never wait for it: while the stream cannot be reached, what cannot
 * be written is dropped, and reading goes on where it was.
 */
import { isFields, jsonFields } from '../../../schemas/index.ts'
import type { RecordStream } from '../../store/index.ts'
import type { CallView } from '../api.ts'
import type { CallRecorder, StoredCall } from './recorder.ts'

const writeMs = 100
const maxBatch = 500
const readMs = 500
const readAtOnce = 500
/** Larger ones are left out: the stream is bounded in number. */
const maxRecord = 4_096

export class SharedCalls {
  readonly #stream: RecordStream
  readonly #recorder: CallRecorder
  readonly #stop: () => void
  readonly #reader: NodeJS.Timeout
  #batch: StoredCall[] = []
  #writer: NodeJS.Timeout | undefined
  #isReading = false
  #last = '0-0'

  constructor(stream: RecordStream, recorder: CallRecorder) {
    this.#stream = stream
    this.#recorder = recorder
    this.#stop = recorder.listen((stored) => this.#note(stored))
    this.#reader = setInterval(() => void this.#read(), readMs).unref()
    void this.#read()
  }

  #note(stored: StoredCall): void {
    if (stored.isRemote || this.#batch.length >= maxBatch) return
    this.#batch.push(stored)
    this.#writer ??= setTimeout(() => this.#write(), writeMs).unref()
  }

  #write(): void {
    this.#writer = undefined
    const texts = this.#batch.map(({ call, owner, isTry }) => JSON.stringify({ call, owner, isTry }))
    this.#batch = []
    // What is lost is what other replicas do not show; the outage itself is told by the storage of sessions.
    this.#stream.append(texts.filter(({ length }) => length <= maxRecord)).catch(() => {})
  }

  async #read(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    try {
      for (let found = readAtOnce; found === readAtOnce; ) {
        const records = await this.#stream.after(this.#last, readAtOnce)
        found = records.length
        for (const { id, value } of records) {
          this.#last = id
          this.#take(value)
        }
      }
    } catch {
      // The next turn goes on where this one ended.
    } finally {
      this.#isReading = false
    }
  }

  #take(text: string): void {
    const { call, owner, isTry } = jsonFields(text) ?? {}
    if (!isCall(call) || call.id.startsWith(`${this.#recorder.replica}.`)) return
    this.#recorder.remote(call, typeof owner === 'string' ? owner : undefined, isTry === true)
  }

  close(): void {
    this.#stop()
    clearInterval(this.#reader)
    clearTimeout(this.#writer)
    if (this.#batch.length > 0) this.#write()
    this.#stream.close()
  }
}

/** Written by another version it may lack what this one reads: such a record is left out. */
function isCall(value: unknown): value is CallView {
  if (!isFields(value)) return false
  const { id, at, method, ms, outcome, payload } = value
  return (
    [id, at, method, outcome, payload].every((text) => typeof text === 'string') && typeof ms === 'number'
  )
}
