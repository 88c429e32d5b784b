/**
 * Finds and opens a configuration file's embedded authorization server.
 *
 * The server's file is `authserver-config.yaml` in the same directory as the host's configuration file. Without the
 * file, there is no embedded server. An unreadable or invalid file is an error. Changed settings take effect at the
 * next start. Changed keys and declared clients take effect within seconds.
 * Source: docs/reference/specification/external-auth.md, docs/reference/specification/virtual-server.md.
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
  reportLoss,
} from '../../observe/index.ts'

/**
 * Returns the path of the file next to `configFile`, or undefined when the file does not exist. A dangling link counts
 * as a file.
 */
export function authServerFileBeside(configFile: string | undefined): string | undefined {
  if (configFile === undefined) return undefined
  const path = join(dirname(configFile), authServerFile)
  return lstatSync(path, { throwIfNoEntry: false }) ? path : undefined
}

export interface AuthServerOptions {
  readonly log: Log
  readonly env?: Environment
  readonly maxUpstreams?: number
  /** The host's event stream. Default: a new stream whose events are written to the log. */
  readonly events?: Events | undefined
  /** Store that all processes of one server share. */
  readonly shared?: Store | undefined
  /** Audit settings of the host. */
  readonly audit?: VmcpConfig['audit']
}

/** Opens the server configured by a file, passes it to `work`, and closes it when `work` is done. */
export async function withAuthServer<T>(
  path: string | undefined,
  options: AuthServerOptions,
  work: (server: HostedAuthServer | undefined) => Promise<T>,
): Promise<T> {
  if (path === undefined) return work(undefined)
  // Loads the authorization server on demand, because most hosts have none.
  const { openAuthServer } = await import('../../authserver/index.ts')
  const { env = environment(), audit: settings, events = makeEvents(), ...parts } = options
  const stopLog = options.events ? () => {} : logEvents(events, parts.log)
  const audit = makeAudit(settings, { watch: reportLoss(events) })
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

/** Writes one audit line per event. Events contain no secrets. */
function record(audit: AuditTrail, { type, sessionHash, ...event }: AuthServerEvent): void {
  audit.authorization({ ...event, type: `auth_${type}`, session: sessionHash })
}

/** Collects the errors of several checks, so one run reports all errors. */
export class Checks {
  readonly #violations: string[] = []

  /** Returns the result of the check, or undefined when the check threw INVALID_CONFIG. Rethrows other errors. */
  async run<T>(check: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await check()
    } catch (error) {
      if (!(error instanceof GatehouseError && error.code === 'INVALID_CONFIG')) throw error
      this.#violations.push(error.message)
      return undefined
    }
  }

  /** Throws an INVALID_CONFIG error that lists all collected errors. */
  throwIfAny(): void {
    if (this.#violations.length > 0) {
      throw new GatehouseError('INVALID_CONFIG', { detail: this.#violations.join('\n') })
    }
  }
}
