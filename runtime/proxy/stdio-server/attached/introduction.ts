/**
 * What the one process behind many clients has said of itself: asked once for each run of the process, and given to every
 * client that opens a session.
 *
 * The process is asked in the name of this program, without sampling, elicitation and roots: such requests of the server would fit no
 * one client. Before a question stands whatever an earlier writer may have left of a line, so one that is not answered is
 * asked again.
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
  /** Raw JSON: the InitializeResult, or the DiscoverResult. */
  readonly result: string
}

/** Asked again after this long, and once more. */
const againMs = [5_000, 30_000] as const

/**
 * Asks a process that may be new to us. `known`: what this very run of it has said before; then it is only asked whether it
 * answers, for some servers refuse a second `initialize`. Rejects when the link is over, or the server opens no session.
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

/** The first result, whichever question it answers; an error only when no question is open any more. */
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
    const timers = againMs.map((ms) => setTimeout(ask, ms).unref())
    const settle = (done: () => void): void => {
      for (const timer of timers) clearTimeout(timer)
      done()
    }
    ask()
  })
}

/**
 * The InitializeResult for one client, in the older of its revision and the server's. Tasks are left out: a list of them
 * would show one client those of another.
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
