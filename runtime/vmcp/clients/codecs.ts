/** Puts the client edges together: both codecs over one core, with what they share. */
import { InFlight, type Log } from '../../net/index.ts'
import type { Clock } from '../model/time/clock.ts'
import type { Gate } from '../../policy/index.ts'
import type { HeaderAllowlist } from '../model/client.ts'
import type { Core } from '../call/core.ts'
import { instructionsFor, instructionsIn } from './instructions.ts'
import { type Advertise, advertisedBy, everything } from './advertised.ts'
import type { ClientResponse } from './response.ts'
import { Listeners } from './stateless-era/listeners.ts'
import { makeStateSealer } from './stateless-era/sealed-state.ts'
import { OldSseEdge } from './session-era/sse-codec.ts'
import { SessionEdge } from './session-era/http-codec.ts'
import { SessionProtocol } from './session-era/protocol.ts'
import { ParkedCalls } from './stateless-era/call.ts'
import { StatelessEdge } from './stateless-era/codec.ts'
import type { ClientSession } from '../model/session.ts'
import { ownOperation, type Perform } from '../model/operation.ts'
import { makeSessionLife, type Subscribe } from './session-life.ts'
import { askTimeoutMs } from './sessions/session.ts'
import type { SessionTable } from './sessions/table.ts'

export interface EdgesOptions {
  readonly core: Core
  readonly sessions: SessionTable
  /** Carries out what clients want: the whole pipeline. */
  readonly perform: Perform
  /** Performs operations that Gatehouse repeats for a client. */
  readonly performOwn: Perform
  /** Returns the policies in force, or undefined when there are none. */
  readonly gate: () => Gate | undefined
  readonly serverInfo: string
  /** What clients are told that the server has: everything, or what its backends have. */
  readonly advertise: 'everything' | 'backends'
  readonly current: HeaderAllowlist
  /** Identifies the server; the same for all its replicas. */
  readonly server: string
  /** Key material shared by replicas; undefined: state is good on this one only. */
  readonly stateSecret: () => string | undefined
  readonly clock: Clock
  readonly log: Log
  readonly endSession: (session: ClientSession) => void
  /** Begins the ids that lead a client back to this process; '' where it is the only one. */
  readonly tag: string
}

export interface Edges {
  readonly sessionEdge: SessionEdge
  readonly oldSseEdge: OldSseEdge
  readonly statelessEdge: StatelessEdge
  readonly listeners: Listeners
  /** Writes to every stream that has been silent, so that nothing on the way takes it for dead. */
  keepAlive(): void
  /** Ends subscriptions and parked calls. */
  close(): void
}

const maxParked = 1_000
const maxParkedPerCaller = 100

export function makeEdges(options: EdgesOptions): Edges {
  const { core, sessions, perform, performOwn, serverInfo, current, clock, log } = options
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
    present: (client) => core.viewAvailable(client),
    backendOf: (client, uri) => core.backendOfResource(client, uri),
    subscribe: async (client, uri, signal) => {
      const outcome = await subscribe(client, uri, signal)
      if (outcome.kind !== 'result') throw new Error('the backend refused the subscription')
    },
    end: options.endSession,
  })
  const advertise: Advertise = async (client) => {
    if (options.advertise === 'everything')
      return { ...everything, instructions: await instructionsFor(client, core, options.gate()) }
    const catalog = await core.view(client, { waitForFresh: true })
    return {
      ...advertisedBy(catalog.listings.map(({ server }) => server)),
      instructions: await instructionsIn(catalog, client, core, options.gate()),
    }
  }
  const protocol = new SessionProtocol({
    sessions,
    perform,
    life: makeSessionLife({ core, subscribe }, (session) => void sessions.save(session)),
    serverInfo,
    advertise,
    responses,
    log,
  })
  const oldSseEdge = new OldSseEdge({ protocol, current, tag: options.tag })
  return {
    listeners,
    sessionEdge: new SessionEdge({ protocol, current }),
    oldSseEdge,
    statelessEdge: new StatelessEdge({
      perform,
      checkHeaders: (client, params, headers) => core.checkMirrored(client, params, headers),
      serverInfo,
      advertise,
      current,
      responses,
      sealer: makeStateSealer({
        server: options.server,
        secret: options.stateSecret,
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
