/** Creates the client codecs for both protocol eras. The codecs share one core and several other components. */
import { InFlight, type Log } from '../../net/index.ts'
import type { Clock } from '../model/time/clock.ts'
import type { Gate } from '../../policy/index.ts'
import type { HeaderAllowlist } from '../model/client.ts'
import type { Core } from '../call/core.ts'
import { instructionsFor, instructionsIn } from './instructions.ts'
import { type Advertise, combineCapabilities, allCapabilities } from './advertised.ts'
import type { ClientResponse } from './response.ts'
import { Listeners } from './stateless-era/listeners.ts'
import { makeStateSealer } from './stateless-era/sealed-state.ts'
import { OldSseEdge } from './session-era/sse-codec.ts'
import { SessionEdge } from './session-era/http-codec.ts'
import { SessionProtocol } from './session-era/protocol.ts'
import { ParkedCalls } from './stateless-era/call.ts'
import { StatelessEdge } from './stateless-era/codec.ts'
import { taskCapabilities, type TaskFeature } from '../features/tasks/index.ts'
import type { ClientSession } from '../model/session.ts'
import { ownOperation, type Perform } from '../model/operation.ts'
import { makeSessionLife, type Subscribe } from './session-life.ts'
import { askTimeoutMs } from './sessions/session.ts'
import type { SessionTable } from './sessions/table.ts'

export interface EdgesOptions {
  readonly core: Core
  readonly sessions: SessionTable
  /** Performs client operations. Runs the whole chain. */
  readonly perform: Perform
  /** Performs operations that Gatehouse repeats on behalf of a client. */
  readonly performOwn: Perform
  /** Returns the active policies, or undefined if none are configured. */
  readonly gate: () => Gate | undefined
  readonly tasks: TaskFeature
  readonly serverInfo: string
  /** Determines whether the server advertises all capabilities or only the backends' capabilities. */
  readonly advertise: 'everything' | 'backends'
  readonly allowlist: HeaderAllowlist
  /** Identifies the server. All replicas of a server use the same value. */
  readonly server: string
  /**
   * Returns key material that the replicas share; see `SealerOptions`. While the list is empty, state is valid only on
   * this replica.
   */
  readonly stateSecrets: () => readonly string[]
  readonly clock: Clock
  readonly log: Log
  readonly endSession: (session: ClientSession) => void
  /** Prefix of ids that route a client back to this process. Empty for a single process. */
  readonly tag: string
}

export interface Edges {
  readonly sessionEdge: SessionEdge
  readonly oldSseEdge: OldSseEdge
  readonly statelessEdge: StatelessEdge
  readonly listeners: Listeners
  /** Writes to every idle stream, so intermediaries do not close the stream. */
  keepAlive(): void
  /** Ends subscriptions and parked calls. */
  close(): void
}

const maxParked = 1_000
const maxParkedPerCaller = 100

export function makeEdges(options: EdgesOptions): Edges {
  const { core, sessions, perform, performOwn, serverInfo, allowlist, clock, log } = options
  const responses = new InFlight<ClientResponse>()
  const parked = new ParkedCalls({
    max: maxParked,
    maxPerCaller: maxParkedPerCaller,
    ttlMs: askTimeoutMs,
    clock,
  })
  const subscribe: Subscribe = (client, uri, signal) =>
    performOwn(ownOperation(client, 'resources/subscribe', { uri }, signal))
  const listeners = new Listeners({
    serverInfo,
    authorize: async ({ caller }, params, signal) =>
      options.gate()?.check(caller, 'subscriptions/listen', params, { signal }),
    viewAvailable: (client) => core.viewAvailable(client),
    backendOf: (client, uri) => core.backendOfResource(client, uri),
    subscribe: async (client, uri, signal) => {
      const outcome = await subscribe(client, uri, signal)
      if (outcome.kind !== 'result') throw new Error('the backend rejected the subscription')
    },
    tasks: options.tasks,
    readTask: (client, taskId, signal) => perform(ownOperation(client, 'tasks/get', { taskId }, signal)),
    endSession: options.endSession,
  })
  const advertise: Advertise = async (client) => {
    const tasks = options.tasks.isOffered() ? taskCapabilities(client) : {}
    if (options.advertise === 'everything')
      return {
        ...allCapabilities(client.era, core.parts.extensions, tasks),
        instructions: await instructionsFor(client, core, options.gate()),
      }
    const catalog = await core.view(client, { waitForFresh: true })
    return {
      ...combineCapabilities(
        catalog.listings.map(({ server }) => server),
        client.era,
        core.parts.extensions,
        tasks,
      ),
      instructions: await instructionsIn(catalog, client, core, options.gate()),
    }
  }
  const protocol = new SessionProtocol({
    sessions,
    perform,
    life: makeSessionLife(
      { core, subscribe, tasks: options.tasks },
      (session) => void sessions.save(session),
    ),
    serverInfo,
    advertise,
    extensions: () => core.parts.extensions,
    responses,
    log,
  })
  const oldSseEdge = new OldSseEdge({ protocol, allowlist, tag: options.tag })
  return {
    listeners,
    sessionEdge: new SessionEdge({ protocol, allowlist, gate: options.gate }),
    oldSseEdge,
    statelessEdge: new StatelessEdge({
      perform,
      checkHeaders: (client, params, headers) => core.checkMirrored(client, params, headers),
      serverInfo,
      advertise,
      extensions: () => core.parts.extensions,
      allowlist,
      responses,
      sealer: makeStateSealer({
        server: options.server,
        secrets: options.stateSecrets,
        ttlMs: askTimeoutMs,
        now: clock.now,
      }),
      parked,
      listeners,
      tag: options.tag,
    }),
    keepAlive() {
      listeners.keepAlive()
      for (const response of responses.values()) response.keepAlive()
    },
    close() {
      parked.close(new Error('the server is shutting down'))
      listeners.close()
      oldSseEdge.close()
    },
  }
}
