/**
 * Data about a running server for the console and reports: its backends, tools, sessions and problems. The data
 * contains no addresses, credentials or session ids.
 */
import { byText, type input } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import { abortable, type Caller } from '../../../net/index.ts'
import {
  type AuditTrail,
  type ConsoleRecord,
  type Events,
  type OpenProblem,
  type RecentFailure,
  sessionHash,
  type ShownSession,
  type ShownTask,
  type ShownTool,
} from '../../../observe/index.ts'
import { type DescribedPolicies, describePolicies, externalPoint } from '../../../policy/index.ts'
import { type DirectCall, type DirectResult, statelessVersion } from '../../../mcp/index.ts'
import type { BackendState } from '../engine/backend-state.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { ToolEntry } from '../../model/catalog/entries.ts'
import type { PinKind } from '../../model/catalog/pinning.ts'
import type { PinDetail, PinReport } from '../../catalog/pinning/report.ts'
import { noAbilities } from '../../model/client.ts'
import type { Core } from '../../call/core.ts'
import type { OperationClient } from '../../model/session.ts'
import type { Perform } from '../../model/operation.ts'
import type { ServerSession } from '../../clients/sessions/session.ts'
import type { SessionTable } from '../../clients/sessions/table.ts'
import type { VmcpEngine } from '../engine/engine.ts'
import { directCall, type DirectParts, directRead } from '../direct-call.ts'
import { hidingRuleOf, withheldText } from './hidden.ts'
import type { LiveTasks } from '../../features/tasks/live-tasks.ts'
import type { QuotaUsage } from '../../features/quotas/guard.ts'
import { cancelTask, shownTasks } from './tasks.ts'
import { type ServerSnapshot, snapshotOf } from './snapshot.ts'

/** Time limit for reading the backends' lists, in milliseconds. */
const askMs = 2_000
/** Time limit for reading a page, in milliseconds. */
const readMs = 30_000

export interface ServerView {
  /** Name of the virtual server. */
  readonly server: string
  /** Returns all backends, including excluded backends, sorted by name. */
  backends(): readonly BackendState[]
  /**
   * Returns the address where the user must sign in to a backend. The address contains the key. Undefined if no sign-in
   * is required.
   */
  signInUrl(backend: string): string | undefined
  /** Returns the open problems, oldest first. */
  problems(): readonly OpenProblem[]
  /** Returns failures of individual calls in the last hour, latest first. */
  recent(): readonly RecentFailure[]
  sessionCount(): number
  sessions(): readonly ShownSession[]
  /** Ends a session. Resolves to false if no session has this hash. Rejects with SESSION_STORE_DOWN. */
  endSession(hash: string): Promise<boolean>
  /** Returns the live tasks that were created through this replica. */
  tasks(): readonly ShownTask[]
  /** Cancels a task. Resolves to false if no live task has this hash. Rejects with the error of the cancellation. */
  cancelTask(hash: string): Promise<boolean>
  /** Returns the active configuration, with defaults and in the same form as the file. */
  config(): unknown
  /**
   * Returns the console settings. The object stays the same as long as the settings are unchanged. Undefined without
   * settings.
   */
  console(): VmcpConfig['console']
  /**
   * Returns the active policies. The object stays the same as long as the policies are unchanged. Undefined without
   * policies.
   */
  policies(): DescribedPolicies | undefined
  /** Returns the URL of the external decision point. A decision point replaces policies. */
  decisionPoint(): string | undefined
  /** Returns the connection settings for clients. */
  connection(): {
    readonly url: string
    readonly auth: boolean
    /** True if only programs of this machine's user can connect, with a token that Gatehouse adds. */
    readonly isLocalOnly: boolean
    readonly accounts: string | undefined
  }
  /** Returns the data for the page that browsers receive. */
  pageFacts(): { readonly name: string; readonly url: string | undefined; readonly requiresAuth: boolean }
  /** Checks a backend now. Resolves to false if no backend has this name. */
  recheck(backend: string): Promise<boolean>
  /** Performs a tool call for a caller, with policies, limits, credentials and audit. Rejects with GatehouseError. */
  call(call: DirectCall): Promise<DirectResult>
  /**
   * Reads the page of a tool for a caller, like `call`. Resolves to undefined if the tool does not exist or has no page.
   */
  readPage(caller: Caller, tool: string): Promise<DirectResult | undefined>
  /**
   * Returns a caller's tools before policies are applied, sorted by name. Includes the tools of backends that are down.
   * Never rejects.
   */
  tools(caller: Caller): Promise<readonly ShownTool[]>
  /** Returns the locks in the active configuration. */
  toolLocks(): readonly input.RuntimeToolLock[]
  /** Returns the comparisons of backends with their locks, sorted by name. Undefined while pinning is disabled. */
  pins(): readonly PinReport[] | undefined
  /** Returns one difference that includes both definitions. Returns undefined if the item does not differ. */
  pinDetail(backend: string, kind: PinKind, name: string): ReviewedPin | undefined
  /** Audits an action in the console. */
  acted(record: ConsoleRecord): void
  /** Returns a snapshot of the server, as seen by a caller. Never rejects. */
  snapshot(caller: Caller): Promise<ServerSnapshot>
}

export interface ReviewedPin extends PinDetail {
  /** True if the backend offers different items to different callers. */
  readonly perCaller: boolean
  /** True if a new lock from the configuration is about to take effect. */
  readonly changing: boolean
}

export interface ViewParts {
  readonly sessions: SessionTable
  readonly url: () => string
  /** True if the address requires a token from local programs. */
  readonly requiresToken: boolean
  readonly accountsUrl: string | undefined
  readonly perform: Perform
  readonly audit: AuditTrail
  readonly liveTasks: LiveTasks
  readonly engine: Pick<VmcpEngine, 'core' | 'states' | 'pins' | 'recheck' | 'endSession' | 'signIns'>
  readonly config: () => VmcpConfig
  readonly events: Pick<Events, 'problems' | 'recent'>
  readonly quotas: () => readonly QuotaUsage[]
}

export function makeServerView(parts: ViewParts): ServerView {
  const { config, engine, events, sessions } = parts
  const directParts: DirectParts = {
    ...parts,
    endBackendSessions: (session) => engine.endSession(session, { gone: true }),
  }
  return {
    server: config().name,
    backends: () => engine.states(),
    signInUrl(backend) {
      const address = engine.signIns?.waitingAt(backend)
      return address && engine.signIns?.withKey(address)
    },
    problems: () => events.problems(),
    recent: () => events.recent(),
    sessionCount: () => sessions.size,
    sessions: () => [...sessions.all()].map(sessionView),
    async endSession(hash) {
      const found = [...sessions.all()].find((session) => hashOf(session) === hash)
      if (found) await sessions.end(found.id, found.client.caller)
      return found !== undefined
    },
    tasks: () => shownTasks(parts.liveTasks),
    cancelTask: (hash) => cancelTask({ ...directParts, live: parts.liveTasks }, hash),
    config,
    console: () => config().console,
    policies: () => policiesOf(config()),
    decisionPoint: () => externalPoint(config().incomingAuth.authz)?.settings.http.url,
    connection() {
      const { console, incomingAuth } = config()
      const url = console?.mcpUrl ?? incomingAuth.oidc?.resource ?? parts.url()
      const auth = incomingAuth.type !== 'anonymous'
      return { url, auth, isLocalOnly: parts.requiresToken && !auth, accounts: parts.accountsUrl }
    },
    pageFacts() {
      const { name, incomingAuth } = config()
      return { name, url: incomingAuth.oidc?.resource, requiresAuth: incomingAuth.type !== 'anonymous' }
    },
    recheck: (backend) => engine.recheck(backend),
    call: (call) => directCall(call, directParts),
    async readPage(caller, tool) {
      const { tools } = await knownCatalog(engine.core, caller)
      const uri = tools.get(tool)?.ui?.page
      if (uri === undefined) return undefined
      return directRead({ caller, uri, signal: AbortSignal.timeout(readMs) }, directParts)
    },
    async snapshot(caller) {
      const catalog = await knownCatalog(engine.core, caller)
      const listed = new Set(catalog.listings.map(({ backend }) => backend))
      return snapshotOf({ config: config(), catalog, states: engine.states(), listed, used: parts.quotas() })
    },
    async tools(caller) {
      const { tools, refusedTools, aliases } = await knownCatalog(engine.core, caller)
      const hidden = hidingRuleOf(config())
      const shown = ({
        key,
        backend,
        original,
        json,
      }: Pick<ToolEntry, 'key' | 'backend' | 'original' | 'json'>) => ({
        name: key,
        alias: aliases.aliasByName.get(key),
        backend,
        original,
        json,
        pin: engine.pins.pinState(backend, 'tool', original),
      })
      return [
        ...[...tools.values()].map((entry) => ({ ...shown(entry), hidden: hidden(entry), refused: false })),
        ...[...refusedTools.values()].map((entry) => ({
          ...shown(entry),
          hidden: withheldText(entry.refused),
          refused: true,
        })),
      ].sort((a, b) => byText(a.name, b.name))
    },
    acted: (record) => parts.audit.console(record),
    toolLocks: () => config().toolLocks ?? [],
    pins: () => (config().pinning ? engine.pins.reports() : undefined),
    pinDetail(backend, kind, name) {
      const detail = engine.pins.detail(backend, kind, name)
      if (!detail) return undefined
      const { pins } = engine
      return { ...detail, perCaller: pins.isPerCaller(backend), changing: pins.locks.isChanging(backend) }
    },
  }
}

/** Policy descriptions, keyed by configuration. The parts of a configuration are never changed in place. */
const descriptions = new WeakMap<VmcpConfig['incomingAuth'], DescribedPolicies>()

function policiesOf({ incomingAuth, name }: VmcpConfig): DescribedPolicies | undefined {
  const { authz } = incomingAuth
  if (authz?.type !== 'cedar') return undefined
  const found = descriptions.get(incomingAuth) ?? describePolicies(authz, name)
  descriptions.set(incomingAuth, found)
  return found
}

const hashes = new WeakMap<ServerSession, string>()

function hashOf(session: ServerSession): string {
  const found = hashes.get(session) ?? sessionHash(session.id)
  hashes.set(session, found)
  return found
}

function sessionView(session: ServerSession): ShownSession {
  const { client, facts, openedAt, usedAt, openStreams } = session
  return {
    hash: hashOf(session),
    owner: facts.owner,
    subject: client.caller.subject,
    displayName: client.caller.displayName,
    actor: client.caller.facts?.actor,
    info: facts.info,
    protocolVersion: facts.protocolVersion,
    openedAt,
    usedAt,
    streams: openStreams,
  }
}

/** Returns a caller's catalog. Uses the last known lists of backends that do not respond in time. */
async function knownCatalog(core: Core, caller: Caller): Promise<Catalog> {
  const client = viewerClient(caller)
  const { members, views } = core.parts
  const asked = views.query(members, client, { waitForFresh: false })
  await abortable(asked, AbortSignal.timeout(askMs)).catch(() => {})
  return views.lastKnown(members, client)
}

/** Returns a client that declares no capabilities. */
function viewerClient(caller: Caller): OperationClient {
  return {
    era: 'stateless',
    protocolVersion: statelessVersion,
    caller,
    abilities: noAbilities,
    info: undefined,
    headers: {},
    session: undefined,
  }
}
