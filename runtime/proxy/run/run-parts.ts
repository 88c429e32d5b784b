/** The dependencies of a running proxy, in addition to its settings. */
import type { Authenticator, EmbeddedAuthServer } from '../../incoming/index.ts'
import type { ConnectionSource, Log, LocalTokens } from '../../net/index.ts'
import type { Events } from '../../observe/index.ts'
import type { TokenSource } from '../../outgoing/index.ts'
import type { Store } from '../../store/index.ts'
import type { RequestObserver } from '../server/request-log.ts'
import type { ProxyAddress } from '../server/server.ts'
import type { SharedSessions } from '../session/sessions.ts'

export interface RunParts {
  readonly log: Log
  /** This program's version, for its metrics. */
  readonly version?: string
  /** The event stream of this process. */
  readonly events?: Events
  /** Prints a line to the user's terminal (login URLs). */
  readonly notify: (line: string) => void
  /** The browser program that the user configured. */
  readonly browser?: string | undefined
  /** Returns the value of a variable that a configuration file refers to. */
  readonly secret?: (name: string) => string | undefined
  /** Enables on-behalf-of exchange. Default: off. */
  readonly enableObo?: boolean
  /** External source of the login token. If set, the proxy does not create a login. */
  readonly tokens?: TokenSource
  /** Sessions shared with other processes. Default: from the configuration. */
  readonly sessions?: SharedSessions
  /** Store for used DPoP proofs, shared by several processes. Default: the memory of this process. */
  readonly proofs?: Store
  /** Source of connections. Default: binds the configured address. */
  readonly connections?: ConnectionSource
  /** Rejects requests without one of these tokens. Default: no token is required. */
  readonly localTokens?: LocalTokens | undefined
  /** Called after every finished request. */
  readonly observe?: RequestObserver
  /** True when warnings about the configuration have already been reported. */
  readonly quiet?: boolean
  /** Aborts a login in progress. */
  readonly signal?: AbortSignal
  /** Replaces the --oidc-* settings for protecting the endpoint. */
  readonly incoming?: (address: ProxyAddress) => Authenticator | Promise<Authenticator>
  /** Issues the tokens that this proxy accepts. Its creator closes it. */
  readonly authServer?: EmbeddedAuthServer
  /** True when the target authenticates the clients. */
  readonly targetRequiresLogin?: boolean
  /** This proxy's external host names; may change at any time. */
  readonly allowedHosts?: ReadonlySet<string>
  /** Maximum size of a request body. Default: the limit that applies to every listener. */
  readonly maxBodyBytes?: number
}
