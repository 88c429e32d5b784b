/**
 * Stores the arguments and results of calls while recording is enabled. Payloads are redacted and truncated before
 * storage, and limited in total size. The oldest payloads are dropped first.
 */
import { type ExchangeRecord, recordedPayload } from '../../observe/index.ts'
import type { PayloadView } from '../api.ts'
import { given } from '../data/pages.ts'
import { type RingEntry, Ring } from './ring.ts'

const ringBytes = 32 * 1024 * 1024
const maxSideBytes = 16 * 1024
/** Extra bytes to capture, so that a credential at the end of the recorded part can be redacted completely. */
const marginBytes = 4 * 1024

export type PayloadMode = 'none' | 'failures' | 'all'

interface StoredPayload extends RingEntry, Omit<PayloadView, 'id'> {}

export class Payloads {
  /** Number of response bytes to capture. */
  readonly responseBytes: number
  readonly #mode: PayloadMode
  readonly #ring = new Ring<StoredPayload>(ringBytes)

  constructor(mode: PayloadMode) {
    this.#mode = mode
    this.responseBytes = mode === 'none' ? 0 : maxSideBytes + marginBytes
  }

  /**
   * Returns true when the payload of the call was stored. Does not store calls without an authenticated caller, which
   * could displace the payloads of users.
   */
  store(seq: number, { caller, rpc, response, outcome, mask }: ExchangeRecord): boolean {
    if (!caller || this.#mode === 'none' || (this.#mode === 'failures' && outcome === 'success')) return false
    const sent =
      rpc?.toolArguments &&
      sideOf(rpc.toolArguments.toString('utf8', 0, this.responseBytes), {
        whole: rpc.toolArguments.length <= this.responseBytes,
        mask,
      })
    const received = response && sideOf(response.text, { whole: response.whole, mask })
    if (!sent && !received) return false
    this.#ring.push({
      seq,
      bytes: 200 + 2 * ((sent?.json.length ?? 0) + (received?.json.length ?? 0)),
      ...given('arguments', sent?.json),
      ...given('result', received?.json),
      truncated: sent?.truncated === true || received?.truncated === true,
    })
    return true
  }

  /** Returns undefined when the payload was dropped. */
  find(seq: number): Omit<PayloadView, 'id'> | undefined {
    const found = this.#ring.find(seq)
    return (
      found && {
        ...given('arguments', found.arguments),
        ...given('result', found.result),
        truncated: found.truncated,
      }
    )
  }
}

function sideOf(text: string, options: Parameters<typeof recordedPayload>[1]) {
  return recordedPayload(text, options, maxSideBytes)
}
