/**
 * Shares calls between replicas: each replica appends its calls to a shared stream and reads the other replicas' calls
 * into its rings. The calls of a replica remain available after the replica exits. Calls never wait for the stream.
 * While the stream is unreachable, new calls are not shared. Reading resumes later where it stopped.
 */
import { isFields, jsonFields } from '../../../schemas/index.ts'
import type { RecordStream } from '../../store/index.ts'
import type { CallView } from '../api.ts'
import type { CallRecorder, StoredCall } from './recorder.ts'

const writeMs = 100
const maxBatch = 500
const readMs = 500
const readAtOnce = 500
/** Maximum size of shared records, because the stream limits only the number of records. */
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
    // Ignores the error: a lost record is missing only on other replicas, and the session storage reports outages.
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
      // The next run resumes after this record.
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

/** Skips a record in which fields are missing, because another version may have written it. */
function isCall(value: unknown): value is CallView {
  if (!isFields(value)) return false
  const { id, at, method, ms, outcome, payload } = value
  return (
    [id, at, method, outcome, payload].every((text) => typeof text === 'string') && typeof ms === 'number'
  )
}
