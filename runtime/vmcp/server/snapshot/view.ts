/**
 * A running server as data, for whoever shows it to people: its backends, tools, sessions and problems. Holds no
 * address, no credential and no session id.
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
  type ShownTool,
} from '../../../observe/index.ts'
import { type DescribedPolicies, describePolicies, externalPoint } from '../../../policy/index.ts'
import { type DirectCall, type DirectResult, statelessVersion } from '../../../mcp/index.ts'
import type { BackendState } from '../engine/backend-state.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { withheldWords } from '../../catalog/refused.ts'
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
import { directCall } from '../direct-call.ts'
import { hiddenBy } from './hidden.ts'
import type { QuotaUsage } from '../../features/quotas/guard.ts'
import { type ServerSnapshot, snapshotOf } from './snapshot.ts'

/** How long backends may take to list their tools for whoever looks. */
const askMs = 2_000

export interface ServerView {
  /** Name of the virtual server. */
  readonly server: string
  /** Sorted by name, the excluded ones included. */
  backends(): readonly BackendState[]
  /** What is wrong now, the oldest first. */
  problems(): readonly OpenProblem[]
  /** What failed call by call within the last hour, the latest first. */
  recent(): readonly RecentFailure[]
  sessionCount(): number
  sessions(): readonly ShownSession[]
  /** Ends a session; false when none has this hash. Rejects with SESSION_STORE_DOWN. */
  endSession(hash: string): Promise<boolean>
  /** The configuration in force, as the file has it, with defaults. */
  config(): unknown
  /** Settings of the console, the same object as long as they are; undefined where there are none. */
  console(): VmcpConfig['console']
  /** The policies in force, the same object as long as they are; undefined without policies. */
  policies(): DescribedPolicies | undefined
  /** URL of the external decision point that decides in their place. */
  decisionPoint(): string | undefined
  /** Where clients connect to. */
  connection(): { readonly url: string; readonly auth: boolean; readonly accounts: string | undefined }
  /** For who opens the address in a browser. */
  pageFacts(): { readonly name: string; readonly url: string | undefined; readonly requiresAuth: boolean }
  /** Checks a backend now; false when there is none of that name. */
  recheck(backend: string): Promise<boolean>
  /**
   * Carries a tool call out for a caller, through policies, limits, credentials and audit. Rejects with GatehouseError.
   */
  call(call: DirectCall): Promise<DirectResult>
  /** What this caller could name, before policies, backends that are down included; sorted by name. Never rejects. */
  tools(caller: Caller): Promise<readonly ShownTool[]>
  /** The locks in force, as the configuration has them. */
  toolLocks(): readonly input.RuntimeToolLock[]
  /** How backends compare with their locks, sorted by name; undefined while pinning is off. */
  pins(): readonly PinReport[] | undefined
  /** One difference with both definitions; undefined when there is none of that name. */
  pinDetail(backend: string, kind: PinKind, name: string): ReviewedPin | undefined
  /** Audits what somebody did in the console. */
  acted(record: ConsoleRecord): void
  /** The server as data, as this caller meets it. Never rejects. */
  snapshot(caller: Caller): Promise<ServerSnapshot>
}

export interface ReviewedPin extends PinDetail {
  /** The backend shows callers different things. */
  readonly perCaller: boolean
  /** The lock of the configuration is another by now, and about to be in force. */
  readonly changing: boolean
}

export interface ViewParts {
  readonly sessions: SessionTable
  readonly url: () => string
  readonly accountsUrl: string | undefined
  readonly perform: Perform
  readonly audit: AuditTrail
  readonly engine: Pick<VmcpEngine, 'core' | 'states' | 'pins' | 'recheck' | 'endSession'>
  readonly config: () => VmcpConfig
  readonly events: Pick<Events, 'problems' | 'recent'>
  readonly quotas: () => readonly QuotaUsage[]
}

export function viewOf(parts: ViewParts): ServerView {
  const { config, engine, events, sessions } = parts
  return {
    server: config().name,
    backends: () => engine.states(),
    problems: () => events.problems(),
    recent: () => events.recent(),
    sessionCount: () => sessions.size,
    sessions: () => [...sessions.all()].map(sessionView),
    async endSession(hash) {
      const found = [...sessions.all()].find((session) => hashOf(session) === hash)
      if (found) await sessions.end(found.id, found.sender.caller)
      return found !== undefined
    },
    config,
    console: () => config().console,
    policies: () => policiesOf(config()),
    decisionPoint: () => externalPoint(config().incomingAuth.authz)?.settings.http.url,
    connection() {
      const { console, incomingAuth } = config()
      const url = console?.mcpUrl ?? incomingAuth.oidc?.resource ?? parts.url()
      return { url, auth: incomingAuth.type !== 'anonymous', accounts: parts.accountsUrl }
    },
    pageFacts() {
      const { name, incomingAuth } = config()
      return { name, url: incomingAuth.oidc?.resource, requiresAuth: incomingAuth.type !== 'anonymous' }
    },
    recheck: (backend) => engine.recheck(backend),
    call: (call) =>
      directCall(call, {
        ...parts,
        endBackendSessions: (session) => engine.endSession(session, { gone: true }),
      }),
    async snapshot(caller) {
      const catalog = await known(engine.core, caller)
      const listed = new Set(catalog.listings.map(({ backend }) => backend))
      return snapshotOf({ config: config(), catalog, states: engine.states(), listed, used: parts.quotas() })
    },
    async tools(caller) {
      const { tools, refusedTools, aliases } = await known(engine.core, caller)
      const hidden = hiddenBy(config())
      const shown = ({
        key,
        backend,
        original,
        json,
      }: Pick<ToolEntry, 'key' | 'backend' | 'original' | 'json'>) => ({
        name: key,
        alias: aliases.of.get(key),
        backend,
        original,
        json,
        pin: engine.pins.pinState(backend, 'tool', original),
      })
      return [
        ...[...tools.values()].map((entry) => ({ ...shown(entry), hidden: hidden(entry), refused: false })),
        ...[...refusedTools.values()].map((entry) => ({
          ...shown(entry),
          hidden: withheldWords(entry.refused),
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
      return { ...detail, perCaller: pins.isPerCaller(backend), changing: pins.book.isChanging(backend) }
    },
  }
}

/** Read once for each configuration: its parts are never changed in place. */
const described = new WeakMap<VmcpConfig['incomingAuth'], DescribedPolicies>()

function policiesOf({ incomingAuth, name }: VmcpConfig): DescribedPolicies | undefined {
  const { authz } = incomingAuth
  if (authz?.type !== 'cedar') return undefined
  const found = described.get(incomingAuth) ?? describePolicies(authz, name)
  described.set(incomingAuth, found)
  return found
}

const hashes = new WeakMap<ServerSession, string>()

function hashOf(session: ServerSession): string {
  const found = hashes.get(session) ?? sessionHash(session.id)
  hashes.set(session, found)
  return found
}

function sessionView(session: ServerSession): ShownSession {
  const { sender, facts, openedAt, usedAt, openStreams } = session
  return {
    hash: hashOf(session),
    owner: facts.owner,
    subject: sender.caller.subject,
    displayName: sender.caller.displayName,
    info: facts.info,
    protocolVersion: facts.protocolVersion,
    openedAt,
    usedAt,
    streams: openStreams,
  }
}

/** What is known is shown when a backend does not answer. */
async function known(core: Core, caller: Caller): Promise<Catalog> {
  const client = viewer(caller)
  const { members, views } = core.parts
  const asked = views.of(members, client, { waitForFresh: false })
  await abortable(asked, AbortSignal.timeout(askMs)).catch(() => {})
  return views.known(members, client)
}

/** A client that declares nothing. */
function viewer(caller: Caller): OperationClient {
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
