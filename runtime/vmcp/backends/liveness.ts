/**
 * Checks that a session-era backend responds. Uses the open session, or opens one if none is open.
 *
 * A ping passes the check if the backend returns any JSON-RPC response, including errors. A ping also passes the check
 * with any 4xx status that is unrelated to credentials or load. If a server responds to a ping with anything else, the
 * check requests the server's lists, one after another, until one response passes. A web server that serves the same
 * page for every request must not pass as an MCP server.
 */
import { emptyObject } from '../../mcp/index.ts'
import type { BackendConnection, ServerInfo } from './connection.ts'
import type { BackendSettings } from './settings.ts'
import { BackendSessionLost, WrongEra } from './session-era/channel.ts'
import { noSender } from './transport/target.ts'
import { HttpStatusError } from './transport/status-error.ts'
import { GatehouseError } from '../../../schemas/index.ts'

export class LivenessCheck {
  readonly #settings: Pick<BackendSettings, 'target' | 'timeoutMs'>
  /** The session in which the backend did not respond to a ping. */
  #withoutPing: ServerInfo | undefined

  constructor(settings: Pick<BackendSettings, 'target' | 'timeoutMs'>) {
    this.#settings = settings
  }

  /** Runs one check. Rejects with BACKEND_* errors. BACKEND_UNAVAILABLE means that the check is inconclusive. */
  async check(
    connection: BackendConnection,
    signal: AbortSignal,
    onServer: (server: ServerInfo) => void,
  ): Promise<void> {
    const server = await connection.open(noSender, signal)
    onServer(server)
    if (this.#withoutPing !== server && (await this.#answersPing(connection, signal))) return
    // The ping may have opened another session.
    this.#withoutPing = await connection.open(noSender, signal)
    await this.#askForLists(connection, this.#withoutPing, signal)
  }

  async #askForLists(connection: BackendConnection, server: ServerInfo, signal: AbortSignal): Promise<void> {
    let failure: unknown
    for (const method of listMethodsOf(server)) {
      try {
        return await this.#ask(connection, method, signal)
      } catch (error) {
        if (!isNoResponse(error)) throw error
        failure = error
      }
    }
    if (failure !== undefined) throw failure
  }

  async #answersPing(connection: BackendConnection, signal: AbortSignal): Promise<boolean> {
    const { deviations } = this.#settings.target
    try {
      await this.#ask(connection, 'ping', signal)
      deviations?.clear('ping_unanswered')
      return true
    } catch (error) {
      if (!isNoResponse(error)) throw error
      deviations?.note('ping_unanswered')
      return false
    }
  }

  async #ask(connection: BackendConnection, method: string, signal: AbortSignal): Promise<void> {
    const { timeoutMs } = this.#settings
    const { bytes: capabilities } = emptyObject
    try {
      await connection.request({
        method,
        params: emptyObject,
        sender: noSender,
        capabilities,
        signal,
        timeoutMs,
      })
    } catch (error) {
      if (!isRefusal(error)) throw error
    }
  }
}

/** True for a 4xx status that is unrelated to credentials or load. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof HttpStatusError &&
    error.code === 'BACKEND_PROTOCOL' &&
    error.httpStatus >= 400 &&
    error.httpStatus < 500
  )
}

/** True if the response is not JSON-RPC, or if the backend has already lost the session that was just opened. */
function isNoResponse(error: unknown): boolean {
  if (error instanceof BackendSessionLost) return true
  if (error instanceof WrongEra || !(error instanceof GatehouseError)) return false
  return error.code === 'BACKEND_PROTOCOL' && !(error instanceof HttpStatusError)
}

/** Returns the list methods that match the backend's declared capabilities. */
function listMethodsOf({ capabilities }: ServerInfo): readonly string[] {
  return (['tools', 'resources', 'prompts'] as const)
    .filter((kind) => capabilities[kind])
    .map((kind) => `${kind}/list`)
}
