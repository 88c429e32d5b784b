/**
 * Reacts to events in a client session. Prepares backends, forwards changed roots and log levels to them, and records
 * which lists the client has read.
 */
import { own } from '../../../schemas/index.ts'
import type { ListKind } from '../backends/connection.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Core } from '../call/core.ts'
import { Resubscriber } from './session-era/resubscribe.ts'
import type { SessionLife } from './session-era/protocol.ts'
import type { TaskFeature } from '../features/tasks/index.ts'
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

/** A session or listening request that is notified of list changes. */
export interface Watcher {
  /** Digest of each list that the client has read. Undefined until the client has read a list. */
  seen: Readonly<Partial<Record<ListKind, string>>> | undefined
  /** Returns the client's current catalog. Rejects if no list could be read. */
  view(): Promise<Catalog>
  notify(message: Buffer, kind: ListKind): void
}

/** Subscribes a client to a resource. */
export type Subscribe = (client: OperationClient, uri: string, signal: AbortSignal) => Promise<Outcome>

export interface SessionLifeParts {
  readonly core: Core
  readonly subscribe: Subscribe
  readonly tasks: Pick<TaskFeature, 'statusFor'>
}

export function makeSessionLife(
  { core, subscribe, tasks }: SessionLifeParts,
  save: (session: ServerSession) => void,
): SessionLife {
  const resubscriber = new Resubscriber()
  return {
    onFirstMessage(session) {
      session.taskStatusFrom = (backend, params) => tasks.statusFor(session.id, backend, params)
      session.allowsNotification = (method, backend) =>
        core.parts.extensions.allowsNotification(method, backend)
      session.onLost = (backend) => renewSubscriptions(subscribe, session, backend, resubscriber)
      if (!session.isRestored) return
      // The session comes from another replica, so this replica must subscribe to the session's resources.
      const signal = AbortSignal.timeout(resubscribeMs)
      for (const uri of session.subscriptions.keys()) subscribe(session.client, uri, signal).catch(() => {})
    },
    onReady(session) {
      // The next request may reach another worker. That worker would open separate backend sessions in the meantime.
      if (session.otherWorkers) return
      // Connects the backends while the client prepares its first request for a list.
      core.view(session.client, { waitForFresh: false }).catch(() => {})
    },
    onSubscribed(session, uri) {
      const backend = core.backendOfResource(session.client, uri)
      if (backend === undefined) return
      session.subscriptions.set(uri, backend)
      save(session)
    },
    onUnsubscribed(session, uri) {
      if (session.subscriptions.delete(uri)) save(session)
    },
    onLevelSet(session) {
      core.setLogLevel(session)
    },
    onRootsChanged(session) {
      core.notifyBackends(session, 'notifications/roots/list_changed')
    },
    onListed(session, method) {
      const kind = own(kindOf, method)
      if (!kind) return
      const digest = core.peek(session.client).digests[kind]
      if (session.seen?.[kind] === digest) return
      session.seen = { ...session.seen, [kind]: digest }
      save(session)
    },
  }
}

/** Renews a client session's subscriptions after a backend has lost the corresponding backend session. */
function renewSubscriptions(
  subscribe: Subscribe,
  session: ServerSession,
  backend: string,
  resubscriber: Resubscriber,
): void {
  resubscriber.schedule(`${session.id} ${backend}`, {
    uris: () => [...session.subscriptions].flatMap(([uri, owner]) => (owner === backend ? [uri] : [])),
    subscribe: async (uri, signal) => (await subscribe(session.client, uri, signal)).kind === 'result',
    onResubscribed: (uri) => session.deliver(backend, updatedMethod, Buffer.from(JSON.stringify({ uri }))),
    isOver: () => session.isOver,
  })
}

/** Returns the watcher that notifies a session of list changes. */
export function watcherOf(session: ServerSession, core: Core): Watcher {
  return {
    get seen() {
      return session.seen
    },
    set seen(value) {
      session.seen = value
    },
    view(): Promise<Catalog> {
      session.useExtensions(core.parts.extensions)
      return core.viewAvailable(session.client)
    },
    notify: (message) => session.pushHere(message),
  }
}
