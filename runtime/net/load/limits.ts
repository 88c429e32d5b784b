/**
 * The numbers of overload protection, in one table. None counts requests in flight: what waits for a backend, for a user or
 * for the next event is no load, however long it takes.
 */
import { bodyBytesOf, ownMemory } from './body-memory.ts'

export interface LoadLimits {
  /** So many that arrive in one turn or wait are never refused: what holds up so few is something else than their number. */
  readonly few: number
  /** What requests may take of one turn of the event loop: as many begin in one as that has time for, the others wait. */
  readonly turnMs: number
  /** Refusals in one turn, for each request that may begin in it; they take about a quarter of the time of one. */
  readonly refusalsPerStart: number
  /** A request that would wait longer for its turn is refused. */
  readonly burstMs: number
  /** The same, for a caller whose requests have had to wait for a while as long as a burst may last. */
  readonly standingMs: number
  /** After a turn of the event loop that took longer, what arrives when the next one has taken as long is refused. */
  readonly longTurnMs: number
  /** Requests that wait, of all callers together. */
  readonly maxWaiting: number
  /** Bodies of requests that wait, in bytes. */
  readonly maxWaitingBytes: number
  /** Bodies of all requests from their arrival until their response is over, in bytes; small ones are not counted. */
  readonly maxBodiesBytes: number
  /** Refusals that wait. */
  readonly maxHeld: number
}

export const loadLimits: LoadLimits = {
  few: 64,
  turnMs: 2.5,
  refusalsPerStart: 4,
  burstMs: 2_000,
  standingMs: 1_000,
  longTurnMs: 250,
  maxWaiting: 20_000,
  maxWaitingBytes: 67_108_864,
  maxBodiesBytes: bodyBytesOf(ownMemory()),
  maxHeld: 10_000,
}
