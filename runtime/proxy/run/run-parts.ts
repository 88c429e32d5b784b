/** What whoever runs a proxy brings along beside its settings. */
import type { Authenticator, EmbeddedAuthServer } from '../../incoming/index.ts'
import type { ConnectionSource, Log } from '../../net/index.ts'
import type { Events } from '../../observe/index.ts'
import type { TokenSource } from '../model/credential.ts'
import type { RequestObserver } from '../server/request-log.ts'
import type { ProxyAddress } from '../server/server.ts'
import type { SharedSessions } from '../session/sessions.ts'

export interface RunParts {
  readonly log: Log
  /** Version of this program, for its metrics. */
  readonly version?: string
  /** The event stream of this process. */
  readonly events?: Events
  /** Prints a line for the person at the terminal (login URLs). */
  readonly notify: (line: string) => void
  /** The user's own browser program. */
  readonly browser?: string | undefined
  /** Value of a variable that a configuration file names. */
  readonly secret?: (name: string) => string | undefined
  /** On-behalf-of exchange; default off. */
  readonly enableObo?: boolean
  /** The login's token from elsewhere: no login is made here. */
  readonly tokens?: TokenSource
  /** Sessions shared with other processes; default: as the configuration says. */
  readonly sessions?: SharedSessions
  /** Where connections come from; default: the address of the configuration is bound. */
  readonly connections?: ConnectionSource
  /** Called for every finished request. */
  readonly observe?: RequestObserver
  /** Warnings about the configuration were given already. */
  readonly quiet?: boolean
  /** Ends a login in flight. */
  readonly signal?: AbortSignal
  /** Protects the endpoint in place of the --oidc-* settings. */
  readonly incoming?: (address: ProxyAddress) => Authenticator | Promise<Authenticator>
  /** Issues the tokens that this proxy accepts. Whoever opened it closes it. */
  readonly authServer?: EmbeddedAuthServer
  /** Host names under which this proxy is reached from outside; may change at any time. */
  readonly allowedHosts?: ReadonlySet<string>
  /** Largest request body; default as for every listener. */
  readonly maxBodyBytes?: number
}
