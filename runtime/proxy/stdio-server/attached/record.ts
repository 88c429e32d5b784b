/**
 * The ConfigMap in which this proxy records the attached server: its state, the proxy that is attached to its streams,
 * and its introduction. The hooks derive conditions from this record, and the next proxy continues from it.
 *
 * Two proxies that write to one process would corrupt each other's lines. The record is therefore a lease, which its
 * owner keeps until the owner releases the record or stops writing for a while. A later proxy waits, for example during
 * a rollout. A failure to read or write the record does not stop the proxy.
 */
import { type Fields, fieldsOf } from '../../../../schemas/index.ts'
import { type ClusterApi, corePath, getObject, mergeInto } from '../../../kube/index.ts'
import type { Log } from '../../../net/index.ts'
import type { Introduction } from './introduction.ts'

export interface AttachReport {
  readonly attached: boolean
  /** Reason for a condition, in CamelCase. */
  readonly reason: string
  readonly message: string
  readonly restarts?: number | undefined
  /** The template revision of the reported pod. */
  readonly revision?: string | undefined
}

export interface AttachRecordOptions {
  readonly api: ClusterApi
  readonly namespace: string
  readonly configMap: string
  /** This proxy's pod name. */
  readonly holder: string
  /** Interval between `isOurs` calls while this proxy owns the record. */
  readonly lookMs: number
  readonly log: Log
}

const key = 'attach.json'
const maxIntroductionBytes = 64 * 1024
/** An owner that has missed this many intervals is considered dead. */
const missedLooks = 3

interface Found {
  readonly record: Fields
  readonly version: unknown
}

export class AttachRecord {
  readonly #options: AttachRecordOptions
  readonly #path: string
  #report: AttachReport = { attached: false, reason: 'Starting', message: 'the proxy is starting' }
  #known: { readonly run: string; readonly introduction: Introduction } | undefined
  #lost = 0
  #written = { text: '', at: 0 }
  #writing: Promise<unknown> = Promise.resolve()
  /** Another owner's record as last seen, and the time since it last changed. */
  #other: { readonly text: string; readonly since: number } | undefined
  #isOurs = false
  #warned = false

  constructor(options: AttachRecordOptions) {
    this.#options = options
    this.#path = corePath(options.namespace, 'configmaps', options.configMap)
  }

  /** Returns the introduction for this run of the server, from this proxy or an earlier proxy. */
  introductionOf(run: string): Introduction | undefined {
    return this.#known?.run === run ? this.#known.introduction : undefined
  }

  introduced(run: string, introduction: Introduction): void {
    this.#known = { run, introduction }
  }

  lost(count: number): void {
    this.#lost += count
  }

  /** Writes changes while this proxy owns the record. */
  async tell(report: AttachReport): Promise<void> {
    this.#report = report
    if (this.#isOurs) await this.#write()
  }

  /** Returns true when this proxy is allowed to attach. Acquires the record when it is free, and renews it. */
  async isOurs(): Promise<boolean> {
    const found = await this.#read()
    if (!found) return true
    const { holder } = found.record
    const isAnothers = typeof holder === 'string' && holder !== this.#options.holder
    if (isAnothers && !this.#isSilent(found.record)) {
      this.#isOurs = false
      return false
    }
    this.#other = undefined
    if (this.#isOurs) {
      await this.#write()
      return true
    }
    this.#adopt(found.record)
    this.#isOurs = true
    this.#isOurs = await this.#write(found.version)
    return this.#isOurs
  }

  #isSilent(record: Fields): boolean {
    const text = JSON.stringify(record)
    const now = performance.now()
    if (this.#other?.text !== text) this.#other = { text, since: now }
    return now - this.#other.since > missedLooks * this.#options.lookMs
  }

  /** Adopts the server's `initialize` result that an earlier proxy stored. */
  #adopt({ run, introduction }: Fields): void {
    const { era, result } = fieldsOf(introduction)
    if (typeof run === 'string' && (era === 'session' || era === 'stateless') && typeof result === 'string')
      this.#known ??= { run, introduction: { era, result } }
  }

  /** Releases the record. */
  async release(): Promise<void> {
    await this.#writing
    if (!this.#isOurs) return
    this.#isOurs = false
    this.#report = { attached: false, reason: 'ProxyEnded', message: 'the proxy has shut down' }
    await this.#patch({ ...this.#content(), holder: null })
  }

  #content(): Fields {
    const { holder } = this.#options
    const { run, introduction } = this.#known ?? {}
    const isSmall = (introduction?.result.length ?? 0) <= maxIntroductionBytes
    return { holder, ...this.#report, lost: this.#lost, ...(isSmall && { run, introduction }) }
  }

  /** Returns false when another proxy wrote after `version`. */
  #write(version?: unknown): Promise<boolean> {
    const content = this.#content()
    const text = JSON.stringify(content)
    const now = performance.now()
    const isFresh = now - this.#written.at < this.#options.lookMs / 2
    if (version === undefined && text === this.#written.text && isFresh) return Promise.resolve(true)
    this.#written = { text, at: now }
    const writing = this.#writing.then(() => this.#patch(content, version))
    this.#writing = writing
    return writing
  }

  async #read(): Promise<Found | undefined> {
    try {
      const { status, body } = await getObject(this.#options.api, this.#path)
      if (status !== 200) throw new Error(`the API server answered ${status}`)
      const text = fieldsOf(body['data'])[key]
      const record = typeof text === 'string' ? fieldsOf(JSON.parse(text)) : {}
      return { record, version: fieldsOf(body['metadata'])['resourceVersion'] }
    } catch (error) {
      this.#warn(error)
      return undefined
    }
  }

  async #patch(content: Fields, version?: unknown): Promise<boolean> {
    const observedAt = new Date().toISOString()
    const data = { [key]: JSON.stringify({ observedAt, ...content }) }
    const metadata = version === undefined ? {} : { metadata: { resourceVersion: version } }
    try {
      const { status } = await mergeInto(this.#options.api, this.#path, { ...metadata, data })
      if (status === 409) return false
      if (status !== 200) throw new Error(`the API server answered ${status}`)
      this.#warned = false
    } catch (error) {
      this.#written = { text: '', at: 0 }
      this.#warn(error)
    }
    return true
  }

  #warn(error: unknown): void {
    const { log, configMap } = this.#options
    if (this.#warned) return
    this.#warned = true
    log.warn("reading or writing this proxy's report failed; continuing without it", {
      config_map: configMap,
      err: error,
    })
  }
}
