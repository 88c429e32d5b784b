/**
 * Limits of the overload protection. None of them limits requests in flight: requests that wait for a backend, a user
 * or an event cause no load.
 */
import { bodyBytesOf, ownMemory } from './body-memory.ts'

export interface LoadLimits {
  /**
   * Number of requests in one turn, or in the queue, that are never rejected. So few requests cannot cause an overload
   * themselves.
   */
  readonly alwaysAdmitted: number
  /** Time in each turn of the event loop for starting requests. The remaining requests wait. */
  readonly turnMs: number
  /**
   * Maximum rejections in one turn for each request that may start in it. A rejection takes about a quarter of the
   * time of a request.
   */
  readonly rejectionsPerStart: number
  /** Maximum expected wait. Requests that would wait longer are rejected. */
  readonly burstMs: number
  /** Maximum expected wait for a caller whose requests have already had to wait for the length of a burst. */
  readonly standingMs: number
  /** Duration of a long turn. After one, requests that arrive when the next turn has taken as long are rejected. */
  readonly longTurnMs: number
  /** Maximum number of waiting requests, all callers together. */
  readonly maxWaiting: number
  /** Maximum size of the bodies of waiting requests, in bytes. */
  readonly maxWaitingBytes: number
  /**
   * Maximum size of all bodies from their arrival until the end of their response, in bytes. Small bodies are not
   * counted.
   */
  readonly maxBodiesBytes: number
  /** Maximum number of pending rejections. */
  readonly maxPendingRejections: number
}

export const loadLimits: LoadLimits = {
  alwaysAdmitted: 64,
  turnMs: 2.5,
  rejectionsPerStart: 4,
  burstMs: 2_000,
  standingMs: 1_000,
  longTurnMs: 250,
  maxWaiting: 20_000,
  maxWaitingBytes: 67_108_864,
  maxBodiesBytes: bodyBytesOf(ownMemory()),
  maxPendingRejections: 10_000,
}
