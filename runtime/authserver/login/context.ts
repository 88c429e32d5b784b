/** What every endpoint works with; built once in server.ts. */
import type { AuthServerConfig } from '../../config/index.ts'
import type { Exchange, Log } from '../../net/index.ts'
import type { ClientDirectory } from '../clients/client-directory.ts'
import type { AuthServerEvent } from '../model/events.ts'
import type { State } from '../storage/state.ts'
import type { Grants } from '../tokens/grants.ts'
import type { KeyRing } from '../tokens/key-ring.ts'
import type { Sessions } from '../tokens/sessions.ts'
import type { Upstream } from '../upstream/upstream.ts'
import type { Urls } from '../model/urls.ts'

export interface AuthServerContext {
  readonly config: AuthServerConfig
  readonly urls: Urls
  readonly state: State
  /** The ring in use; another one after a reload. */
  readonly keys: () => KeyRing
  readonly clients: ClientDirectory
  /** In the order of the configuration; the first one gives the identity. */
  readonly upstreams: readonly Upstream[]
  readonly grants: Grants
  readonly sessions: Sessions
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Log
  readonly emit: (event: AuthServerEvent) => void
  /** Network address of the client, trusted proxies considered. */
  readonly addressOf: (exchange: Exchange) => string
}

export function nowSec(context: Pick<AuthServerContext, 'now'>): number {
  return Math.floor(context.now() / 1000)
}

/**
 * True for the providers that nobody can leave out: the first, which says who the user is, and the one whose token
 * policies read, without which they refuse everything.
 */
export function isRequired({ config, upstreams }: AuthServerContext, name: string): boolean {
  return name === upstreams[0]?.name || name === config.primaryUpstreamProvider
}

export function upstreamNamed(context: AuthServerContext, name: string): Upstream | undefined {
  return context.upstreams.find((upstream) => upstream.name === name)
}
