import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import type { ExcludedBackend, VmcpConfig } from '../../config/index.ts'
import type { EmbeddedAuthServer } from '../../incoming/index.ts'
import type { LoadLimits, Log, LocalTokens } from '../../net/index.ts'
import type { Events, ExchangeRecorder } from '../../observe/index.ts'
import type { UpstreamTokens } from '../../outgoing/index.ts'
import type { LockKeeper } from '../catalog/pinning/first-seen.ts'
import type { Clock } from '../model/time/clock.ts'
import type { Observation } from './observation.ts'
import type { ClusterApi } from '../../kube/index.ts'
import type { Store } from '../../store/index.ts'
import type { PrimaryLink } from '../../process/index.ts'
import type { ServerView } from './snapshot/view.ts'

/** Default values of `StartOptions`. */
export const defaults = {
  port: 4483,
  ttlMs: 30 * 60_000,
  maxSessions: 10_000,
  /** Maximum number of stored sessions with a live copy in memory. An evicted session is restored at its next use. */
  sharedSessions: 1_000,
  graceMs: 10_000,
  /** Limits how long a session record can be outdated after a message between workers is lost. */
  freshMs: 5_000,
} as const

/** The parts that several processes on one port share. */
export interface ServingWorker {
  readonly link: PrimaryLink
  /** Stores in the primary process's memory. Each store has separate limits. */
  readonly sessions: Store
  readonly counters: Store
  readonly tasks: Store
  /** Store for used DPoP proofs. */
  readonly proofs: Store
}

export interface StartOptions {
  /** Set if this process is one of several that serve a port. By default, this is the only process. */
  readonly worker?: ServingWorker | undefined
  /** Bind address. The default is 127.0.0.1. */
  readonly host?: string | undefined
  /** 0 lets the kernel choose. The default is 4483. */
  readonly port?: number | undefined
  /**
   * Rejects requests without one of these tokens, except on the server's open paths. By default, no token is required.
   */
  readonly localTokens?: LocalTokens | undefined
  /** Certificate for TLS. The caller must close this object. */
  readonly certificate?: ServedCertificate | undefined
  readonly log?: Log | undefined
  /** Event stream of this process, which the caller logs. By default, the server creates a separate event stream. */
  readonly events?: Events | undefined
  readonly version?: string | undefined
  /** Receives a record of every request. The caller must close the recorder. */
  readonly recorder?: ExchangeRecorder | undefined
  /** Lifetime of an unused session. Each use renews the session. The default is 30 minutes. */
  readonly sessionTtlMs?: number | undefined
  readonly maxSessions?: number | undefined
  readonly allowedOrigins?: readonly string[] | undefined
  readonly clock?: Clock | undefined
  /** Upstream tokens of callers, from the embedded authorization server. */
  readonly upstreamTokens?: UpstreamTokens | undefined
  /**
   * Issues the tokens that this server accepts, and stores upstream tokens. The caller closes the authorization server.
   */
  readonly authServer?: EmbeddedAuthServer | undefined
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** SHA-256 digest of the configuration file, for the report to the cluster. */
  readonly configChecksum?: string | undefined
  /** Backends in the file that are not part of the configuration. */
  readonly excluded?: readonly ExcludedBackend[] | undefined
  /** Replaces the cluster access from the environment in tests. */
  readonly clusterApi?: ClusterApi | undefined
  /** Replaces the limits of overload protection in tests. */
  readonly load?: Partial<LoadLimits> | undefined
  /** Time limit for requests in flight when the server closes. The default is 10 s. */
  readonly graceMs?: number | undefined
  /**
   * Capabilities that the server advertises. By default, the server advertises all capabilities, because backends may
   * be added and removed.
   */
  readonly advertise?: 'everything' | 'backends' | undefined
  /** Stores locks for backends that have no lock. The setting `pinning.noLock: pin` requires this member. */
  readonly lockKeeper?: LockKeeper | undefined
}

/** The file that contains a changed configuration. */
export interface ReloadedFile {
  /** SHA-256 digest of the file's text, in hex. */
  readonly checksum?: string | undefined
  /** Backends in the file that are not part of the configuration. */
  readonly excluded?: readonly ExcludedBackend[] | undefined
}

export interface VmcpServer {
  /** Port for requests from other workers. Undefined for a single process. */
  readonly relayPort: number | undefined
  /** Address of the MCP endpoint. */
  readonly url: string
  /** Address without a path, for example for `/health`. */
  readonly origin: string
  /** The server's state as plain data, for the console and reports. */
  readonly view: ServerView
  /**
   * Applies a changed configuration. Backends that cannot be set up are excluded and reported. Throws INVALID_CONFIG
   * and changes nothing if the configuration is invalid in any other way.
   */
  reload(config: VmcpConfig, file?: ReloadedFile): void
  close(options?: { readonly graceMs?: number | undefined }): Promise<void>
}

/** A server's audit, telemetry, events and log. */
export interface ServerReports {
  readonly observation: Observation
  readonly events: Events
  readonly stopLog: () => void
}
