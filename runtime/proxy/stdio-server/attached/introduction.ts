/**
 * Requests the `initialize` or `server/discover` result of a process that many clients share. This program sends the
 * request once per run of the process, and returns the result to every client that opens a session.
 *
 * The request identifies this program as the client, and declares no sampling, elicitation or roots, because such
 * server requests would not belong to a specific client. An earlier writer may have left an incomplete line before the
 * request, so an unanswered request is repeated.
 * Source: MCP 2025-11-25, lifecycle; MCP 2026-07-28, stdio.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  JsonObject,
  latestSessionVersion,
  sessionVersions,
  type LinkOutcome,
  discover,
  emptyObjectBytes,
  initializeParams,
  opensSession,
  type LinkRequester,
} from '../../../mcp/index.ts'

export interface Introduction {
  readonly era: 'session' | 'stateless'
  /** The InitializeResult or the DiscoverResult as raw JSON. */
  readonly result: string
}

/** Delays before each of the two repeated requests. */
const repeatAfterMs = [5_000, 30_000] as const

/**
 * Requests the `initialize` or `server/discover` result of a process. `known` is the result of an earlier request in
 * the same run. If `known` is given, only a ping is sent, because some servers reject a second `initialize`. Rejects
 * when the connection ends or the server does not open a session.
 */
export async function introduce(
  requester: LinkRequester,
  info: string,
  known: Introduction | undefined,
): Promise<Introduction> {
  if (known) {
    await askUntilAnswered(requester, known.era === 'session' ? 'ping' : 'server/discover', '{}')
    return known
  }
  const params = initializeParams(emptyObjectBytes, info)
  const { result } = await askUntilAnswered(requester, 'initialize', params)
  if (result && opensSession(result)) {
    requester.notify('notifications/initialized')
    return { era: 'session', result: result.toString() }
  }
  const discovered = result ? undefined : await discover(requester, info)
  if (!discovered)
    throw new GatehouseError('BACKEND_PROTOCOL', { detail: 'the server did not open a session' })
  return { era: 'stateless', result: discovered.toString() }
}

/** Resolves with the first result from any attempt. Resolves with an error only when no attempts are pending. */
function askUntilAnswered(requester: LinkRequester, method: string, params: string): Promise<LinkOutcome> {
  return new Promise((resolve, reject) => {
    let open = 0
    const ask = (): void => {
      open++
      requester.request(requester.newId(), method, params).then(
        (outcome) => {
          open--
          if (outcome.result || open === 0) settle(() => resolve(outcome))
        },
        (error: unknown) =>
          settle(() => reject(error instanceof Error ? error : new Error('the link is over'))),
      )
    }
    const timers = repeatAfterMs.map((ms) => setTimeout(ask, ms).unref())
    const settle = (done: () => void): void => {
      for (const timer of timers) clearTimeout(timer)
      done()
    }
    ask()
  })
}

/**
 * Returns the InitializeResult for one client, with the older of the client's and the server's revisions. Omits tasks,
 * because listing them would expose one client's tasks to another.
 */
export function introductionFor(introduction: JsonObject, wanted: string | undefined): Buffer {
  const own = introduction.text('protocolVersion') ?? latestSessionVersion
  const known = wanted !== undefined && sessionVersions.includes(wanted)
  // Newest first.
  const version = known && sessionVersions.indexOf(wanted) > sessionVersions.indexOf(own) ? wanted : own
  const capabilities = introduction.object('capabilities')
  return introduction.with({
    protocolVersion: JSON.stringify(version),
    ...(capabilities && { capabilities: capabilities.with({ tasks: undefined }) }),
  })
}
