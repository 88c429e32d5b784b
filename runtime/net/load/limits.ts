/**
 * Limits for overload protection. There is no limit for requests in flight, because requests that wait for a backend, a
 * user or an event cause no load.
 */
import { bodyBytesOf, ownMemory } from './body-memory.ts'

export interface LoadLimits {
  /**
   * Number of requests in one turn, or in the queue, that are always accepted. Such a small number of requests cannot
   * overload the server.
   */
  readonly alwaysAdmitted: number
  /** Time limit for starting requests in each turn of the event loop. The remaining requests wait. */
  readonly turnMs: number
  /**
   * Maximum number of rejections in one turn for each request that can start in that turn. Rejecting a request takes
   * about a quarter of the time that serving it takes.
   */
  readonly rejectionsPerStart: number
  /** Maximum expected wait. Requests that would wait longer are rejected. */
  readonly burstMs: number
  /** Maximum expected wait for a caller whose requests have had to wait for longer than `burstMs`. */
  readonly standingMs: number
  /**
   * Minimum duration of a long turn. After a long turn, requests that arrive when the next turn has already taken this
   * long are rejected.
   */
  readonly longTurnMs: number
  /** Maximum number of waiting requests across all callers. */
  readonly maxWaiting: number
  /** Maximum total size of waiting requests' bodies, in bytes. */
  readonly maxWaitingBytes: number
  /**
   * Maximum total size of all bodies in bytes. A body counts from its arrival until the end of its response. Small
   * bodies are not counted.
   */
  readonly maxBodiesBytes: number
  /** Maximum number of rejections that wait for a later turn. */
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
