/**
 * What follows from events in a client session: backends are warmed up, notified of changed roots and levels, and sessions
 * are notified of changed lists.
 */
import { own } from '../../../schemas/index.ts'
import type { ListKind } from '../backends/connection.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Core } from '../call/core.ts'
import { Resubscriber } from './session-era/resubscribe.ts'
import { clientOf, type SessionLife } from './session-era/protocol.ts'
import type { Watcher } from './watcher.ts'
import type { OperationClient } from '../model/session.ts'
import type { Outcome } from '../model/outcome.ts'
import type { ServerSession } from './sessions/session.ts'
import { updatedMethod } from '../../mcp/index.ts'

const kindOf: Readonly<Record<string, ListKind>> = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resources',
}

const resubscribeMs = 30_000

/** Subscribes a client to a resource. */
export type Subscribe = (client: OperationClient, uri: string, signal: AbortSignal) => Promise<Outcome>

export interface SessionLifeParts {
  readonly core: Core
  readonly subscribe: Subscribe
}

export function makeSessionLife(
  { core, subscribe }: SessionLifeParts,
  save: (session: ServerSession) => void,
): SessionLife {
  const resubscriber = new Resubscriber()
  return {
    began(session) {
      session.onLost = (backend) => renew(subscribe, session, backend, resubscriber)
      if (!session.restored) return
      // The session comes from another replica: what it is subscribed to is watched from here now.
      const signal = AbortSignal.timeout(resubscribeMs)
      for (const uri of session.subscriptions.keys())
        subscribe(clientOf(session), uri, signal).catch(() => {})
    },
    ready(session) {
      // The next request may fall on another worker, which would open sessions of its own at the backends meanwhile.
      if (session.elsewhere) return
      // Connects the backends while the client prepares its first list.
      core.view(clientOf(session), { waitForFresh: false }).catch(() => {})
    },
    subscribed(session, uri) {
      const backend = core.backendOfResource(clientOf(session), uri)
      if (backend === undefined) return
      session.subscriptions.set(uri, backend)
      save(session)
    },
    unsubscribed(session, uri) {
      if (session.subscriptions.delete(uri)) save(session)
    },
    levelSet(session) {
      core.setLogLevel(session)
    },
    rootsChanged(session) {
      core.notifyBackends(session, 'notifications/roots/list_changed')
    },
    listed(session, method) {
      const kind = own(kindOf, method)
      if (!kind) return
      const digest = core.peek(clientOf(session)).digests[kind]
      if (session.seen?.[kind] === digest) return
      session.seen = { ...session.seen, [kind]: digest }
      save(session)
    },
  }
}

/** Subscribes a session again to what it watched at a backend that has forgotten it. */
function renew(
  subscribe: Subscribe,
  session: ServerSession,
  backend: string,
  resubscriber: Resubscriber,
): void {
  resubscriber.lost(`${session.id} ${backend}`, {
    uris: () => [...session.subscriptions].flatMap(([uri, owner]) => (owner === backend ? [uri] : [])),
    subscribe: async (uri, signal) => (await subscribe(clientOf(session), uri, signal)).kind === 'result',
    watched: (uri) => session.deliver(backend, updatedMethod, Buffer.from(JSON.stringify({ uri }))),
    over: () => session.isOver,
  })
}

/** A session as somebody who wants to know of changed lists. */
export function watcherOf(session: ServerSession, core: Core): Watcher {
  return {
    get seen() {
      return session.seen
    },
    set seen(value) {
      session.seen = value
    },
    view: (): Promise<Catalog> => core.viewAvailable(clientOf(session)),
    notify: (message) => session.pushHere(message),
  }
}
