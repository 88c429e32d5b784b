/**
 * The numbers of the listener and of outgoing connections, in one table. Times are milliseconds, sizes are bytes.
 * Streams have no time limit of any kind: neither responses nor upstream bodies are cut while they are quiet. Only a client that
 * does not read what is sent is cut.
 */
export interface ListenerLimits {
  /** Time to receive the header block. */
  readonly headersTimeoutMs: number
  /** Time to receive the whole request, body included. */
  readonly requestTimeoutMs: number
  /** Idle time after which an idle connection is closed. */
  readonly keepAliveTimeoutMs: number
  /** Header block; beyond it the response is 431. */
  readonly maxHeaderBytes: number
  /** How long a client may read nothing while there is something to read. */
  readonly stalledMs: number
  /** Header blocks of all connections that are not complete. */
  readonly maxUnfinishedBytes: number
  /** How often these are looked at. */
  readonly headersLookMs: number
  /** How often the two request times are checked. */
  readonly checkIntervalMs: number
}

export const listenerLimits: ListenerLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 120_000,
  maxHeaderBytes: 1_048_576,
  stalledMs: 30_000,
  maxUnfinishedBytes: 67_108_864,
  headersLookMs: 250,
  checkIntervalMs: 1_000,
}

/** Default cap of a request body. A body of exactly this size passes. */
export const maxBodyBytes = 8_388_608

export const dialTimeoutMs = 30_000
export const tlsTimeoutMs = 10_000
