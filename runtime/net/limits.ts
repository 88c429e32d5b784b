/**
 * Limits for the listener and for outgoing connections. Times are in milliseconds, and sizes are in bytes. Streams have
 * no time limit: quiet responses and upstream bodies stay open. The listener disconnects a client only if the client
 * does not read its response.
 */
export interface ListenerLimits {
  /** Time to receive the header block. */
  readonly headersTimeoutMs: number
  /** Time to receive the whole request, including the body. */
  readonly requestTimeoutMs: number
  /** Time after which an idle connection is closed. */
  readonly keepAliveTimeoutMs: number
  /** Maximum size of the header block. Larger blocks get a 431 response. */
  readonly maxHeaderBytes: number
  /** Maximum time for which a client may stop reading while a response is pending. */
  readonly stalledMs: number
  /** Maximum total size of incomplete header blocks across all connections. */
  readonly maxUnfinishedBytes: number
  /** Interval between checks for incomplete header blocks. */
  readonly headersLookMs: number
  /** Interval between checks of the two request timeouts. */
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

/** Default maximum size of a request body, inclusive. */
export const maxBodyBytes = 8_388_608

export const dialTimeoutMs = 30_000
export const tlsTimeoutMs = 10_000
