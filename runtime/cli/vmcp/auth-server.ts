/**
 * The embedded authorization server of a configuration file: where its own file is, and opening it for a host.
 *
 * It is the file `authserver-config.yaml` in the directory of the host's file; none there means no embedded server,
 * one that cannot be read or used is an error. Its own settings take effect at the next start, its keys at once.
 * Source: spec documents 2 and 3.
 */
import { lstatSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { authServerFile, GatehouseError } from '../../../schemas/index.ts'
import type { AuthServerEvent, HostedAuthServer } from '../../authserver/index.ts'
import { type Environment, environment, type VmcpConfig } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import type { Store } from '../../store/index.ts'
import {
  type AuditTrail,
  type Events,
  logEvents,
  makeAudit,
  makeEvents,
  tellLoss,
} from '../../observe/index.ts'

/** The path of the file beside `configFile`; undefined when there is none. A link to nothing is a file. */
export function authServerFileBeside(configFile: string | undefined): string | undefined {
  if (configFile === undefined) return undefined
  const path = join(dirname(configFile), authServerFile)
  return lstatSync(path, { throwIfNoEntry: false }) ? path : undefined
}

export interface AuthServerOptions {
  readonly log: Log
  readonly env?: Environment
  readonly maxUpstreams?: number
  /** The event stream of the host; default one that is written to the log. */
  readonly events?: Events | undefined
  /** What the processes of one server share. */
  readonly shared?: Store | undefined
  /** Audit settings of the host. */
  readonly audit?: VmcpConfig['audit']
}

/** Opens the server of a file, hands it to `work`, and closes it when `work` is done. */
export async function withAuthServer<T>(
  path: string | undefined,
  options: AuthServerOptions,
  work: (server: HostedAuthServer | undefined) => Promise<T>,
): Promise<T> {
  if (path === undefined) return work(undefined)
  // Most hosts have none, and start without loading it.
  const { openAuthServer } = await import('../../authserver/index.ts')
  const { env = environment(), audit: settings, events = makeEvents(), ...parts } = options
  const stopLog = options.events ? () => {} : logEvents(events, parts.log)
  const audit = makeAudit(settings, { watch: tellLoss(events) })
  try {
    const server = await openAuthServer(path, env, {
      ...parts,
      onEvent(event) {
        const { type, outcome, upstream, reason } = event
        events.emit('authorization_server', { action: type, outcome, upstream, reason })
        record(audit, event)
      },
    })
    try {
      return await work(server)
    } finally {
      await server.close()
    }
  } finally {
    audit.close()
    stopLog()
  }
}

/** One line for each event; there is nothing secret in them. */
function record(audit: AuditTrail, { type, sessionHash, ...event }: AuthServerEvent): void {
  audit.authorization({ ...event, type: `auth_${type}`, session: sessionHash })
}

/** Gathers the errors of several checks, so that one run names them all. */
export class Checks {
  readonly #violations: string[] = []

  /** The check's answer; undefined when it found errors. Whatever is no error of configuration is thrown on. */
  async run<T>(check: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await check()
    } catch (error) {
      if (!(error instanceof GatehouseError && error.code === 'INVALID_CONFIG')) throw error
      this.#violations.push(error.message)
      return undefined
    }
  }

  /** Throws INVALID_CONFIG with everything that was found. */
  throwIfAny(): void {
    if (this.#violations.length > 0) {
      throw new GatehouseError('INVALID_CONFIG', { detail: this.#violations.join('\n') })
    }
  }
}
