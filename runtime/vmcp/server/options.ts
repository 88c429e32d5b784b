/** What a virtual server is started with, and what it answers to whoever started it. */
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import type { ExcludedBackend, VmcpConfig } from '../../config/index.ts'
import type { EmbeddedAuthServer } from '../../incoming/index.ts'
import type { LoadLimits, Log } from '../../net/index.ts'
import type { Events, ExchangeRecorder } from '../../observe/index.ts'
import type { UpstreamTokens } from '../../outgoing/index.ts'
import type { LockKeeper } from '../catalog/pinning/first-seen.ts'
import type { Clock } from '../model/time/clock.ts'
import type { Observation } from './observation.ts'
import type { ClusterApi } from '../../kube/index.ts'
import type { Store } from '../../store/index.ts'
import type { PrimaryLink } from '../../process/index.ts'
import type { ServerView } from './snapshot/view.ts'

/** What is not given. */
export const defaults = {
  port: 4483,
  ttlMs: 30 * 60_000,
  maxSessions: 10_000,
  /** Live copies of sessions that the shared store keeps; a session that was put out is restored when it is used. */
  sharedSessions: 1_000,
  graceMs: 10_000,
  /** Limits how long a lost message between workers can leave a session record outdated. */
  freshMs: 5_000,
} as const

/** One of several processes that serve one port. */
export interface ServingWorker {
  readonly link: PrimaryLink
  /**
   * What all of them share, in the memory of their primary: sessions, and the counters of quotas. Each has its own
   * bounds.
   */
  readonly sessions: Store
  readonly counters: Store
}

export interface StartOptions {
  /** This process is one of several that serve a port. Default: it is the only one. */
  readonly worker?: ServingWorker | undefined
  /** Bind address. Default 127.0.0.1. */
  readonly host?: string | undefined
  /** 0 lets the kernel choose. Default 4483. */
  readonly port?: number | undefined
  /** Serve TLS. Whoever opened it closes it. */
  readonly certificate?: ServedCertificate | undefined
  readonly log?: Log | undefined
  /** The event stream of this process, which somebody else writes to the log; default one of the server's own. */
  readonly events?: Events | undefined
  readonly version?: string | undefined
  /** Takes a record of every request, for whoever shows them; whoever made it closes it. */
  readonly recorder?: ExchangeRecorder | undefined
  /** Sliding life of a session without use. Default 30 minutes. */
  readonly sessionTtlMs?: number | undefined
  readonly maxSessions?: number | undefined
  readonly allowedOrigins?: readonly string[] | undefined
  readonly clock?: Clock | undefined
  /** Upstream tokens of callers, from the embedded authorization server. */
  readonly upstreamTokens?: UpstreamTokens | undefined
  /** Issues the tokens that this server accepts, and holds those of upstreams. Whoever opened it closes it. */
  readonly authServer?: EmbeddedAuthServer | undefined
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** SHA-256 of the configuration file, for the report to the cluster. */
  readonly configChecksum?: string | undefined
  /** Backends of the file that the configuration is without. */
  readonly excluded?: readonly ExcludedBackend[] | undefined
  /** Replaces the access to the cluster that the environment gives (tests). */
  readonly clusterApi?: ClusterApi | undefined
  /** Replaces numbers of overload protection (tests). */
  readonly load?: Partial<LoadLimits> | undefined
  /** Time for requests in flight when closing. Default 10 s. */
  readonly graceMs?: number | undefined
  /** What clients are told that this server has. Default everything, because backends come and go. */
  readonly advertise?: 'everything' | 'backends' | undefined
  /** Stores locks of backends that have none; without it `pinning.noLock` must not be pin. */
  readonly lockKeeper?: LockKeeper | undefined
}

/** The file that a changed configuration came from. */
export interface ReloadedFile {
  /** SHA-256 of its text, hex. */
  readonly checksum?: string | undefined
  /** Backends of the file that the configuration is without. */
  readonly excluded?: readonly ExcludedBackend[] | undefined
}

export interface VmcpServer {
  /** Where the other workers of this server reach it; undefined where there is one process. */
  readonly relayPort: number | undefined
  /** Address of the MCP endpoint. */
  readonly url: string
  /** Address without path, for `/health` and the like. */
  readonly origin: string
  /** For whoever shows the server to people. */
  readonly view: ServerView
  /**
   * Takes a changed configuration. Backends that cannot be set up are excluded and reported. Throws INVALID_CONFIG and
   * changes nothing when it cannot be used otherwise.
   */
  reload(config: VmcpConfig, file?: ReloadedFile): void
  close(options?: { readonly graceMs?: number | undefined }): Promise<void>
}

/** Where the server reports what happens. */
export interface Told {
  readonly observation: Observation
  readonly events: Events
  readonly stopLog: () => void
}
