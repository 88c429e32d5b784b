/** Assembles the console's access control, API and listener. */
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServedCertificate } from '../../schemas/certificate/index.ts'
import { GatehouseError } from '../../schemas/index.ts'
import { type Caller, type Fetch, isLoopbackHost, type Log } from '../net/index.ts'
import type { Events } from '../observe/index.ts'
import type { RecordStream } from '../store/index.ts'
import { type Acted, actedIn } from './acted.ts'
import { anonymousAccess } from './access/anonymous.ts'
import { Issuer } from './access/issuer.ts'
import { loginAccess } from './access/login.ts'
import { makeRoles, type RoleSettings } from './access/roles.ts'
import type { VisitorAccess } from './access/visitor.ts'
import type { CallRecorder } from './calls/recorder.ts'
import { SharedCalls } from './calls/shared-calls.ts'
import type { Explain } from './data/explain.ts'
import { apiRoutes } from './routes.ts'
import { type RunningConsole, serveConsole } from './server.ts'
import { Hub } from './stream/hub.ts'
import { Readers } from './stream/reader.ts'
import { AppPages } from './tries/app-pages.ts'
import { Tries } from './tries/tries.ts'
import type { Approver, ConsoleView } from './view.ts'

export interface ConsoleOptions {
  readonly view: ConsoleView
  readonly explain: Explain
  readonly approver: Approver
  /** Records calls from the moment the server starts. Closed together with the console. */
  readonly recorder: CallRecorder
  readonly events: Events
  /**
   * Stream shared with the other replicas. Closed together with the console. Without a stream, the console shows only
   * this replica's calls.
   */
  readonly shared?: RecordStream | undefined
  readonly version: string
  readonly host: string
  /** Port to listen on; 0 lets the kernel choose. */
  readonly port: number
  /** Certificate for TLS. The caller closes this object. */
  readonly certificate?: ServedCertificate | undefined
  /** Prefix of all paths, without a trailing slash. Default: none. */
  readonly basePath?: string | undefined
  /** Origin that browsers use. Default: the names of this machine. */
  readonly publicUrl?: string | undefined
  readonly access: AnonymousOptions | OidcOptions
  /** Folder that contains the static files. Default: the build's folder. */
  readonly assets?: string | undefined
  readonly log: Log
}

/** Settings for access without a login: the required token, and the caller for all requests. */
export interface AnonymousOptions {
  readonly type: 'anonymous'
  readonly token: string
  readonly caller: Caller
}

/** Settings for login through an OpenID Connect issuer. */
export interface OidcOptions {
  readonly type: 'oidc'
  readonly issuer: string
  readonly clientId: string
  /** Returns the client secret for each login. Undefined for a public client. */
  readonly clientSecret: (() => string | undefined) | undefined
  readonly scopes: readonly string[]
  /**
   * Returns the current settings: the same object while the settings are unchanged. Changes also apply to signed-in
   * users.
   */
  readonly roles: () => RoleSettings
  readonly fetch: Fetch
  readonly now?: () => number
}

/** Starts the console of one server. Rejects with the system error when binding fails. */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { view, recorder, events, version, host, port, assets = builtAssets(), log } = options
  const { basePath = '', publicUrl } = options
  const acted = actedIn(view, events)
  const access = accessOf(options, acted)
  recorder.serves(view)
  const hub = new Hub({ recorder, events, sessionCount: () => view.sessionCount() })
  const readers = new Readers(hub, recorder)
  // Checks which streams may stay open after the settings, which include the roles, have changed. Each heartbeat
  // detects other changes.
  const stopWatching = events.listen(({ type }) => {
    if (type === 'config_reloaded') readers.check()
  })
  const shared = options.shared && new SharedCalls(options.shared, recorder)
  const tries = new Tries(view, (tried) => recorder.tried(tried))
  const apps = new AppPages(view, Date.now)
  const routes = apiRoutes({
    view,
    recorder,
    readers,
    tries,
    apps,
    explain: options.explain,
    approver: options.approver,
    access,
    version,
    now: Date.now,
  })
  const served = await serveConsole({
    host,
    port,
    certificate: options.certificate,
    basePath,
    publicUrl,
    access,
    routes,
    acted,
    apps,
    assets,
    log,
  })
  return {
    url: served.url,
    async close() {
      stopWatching()
      tries.close()
      readers.close()
      hub.close()
      shared?.close()
      recorder.close()
      await served.close()
    },
  }
}

/** Throws INVALID_CONFIG for invalid policies, and when a login is configured without a public URL. */
function accessOf(options: ConsoleOptions, acted: Acted): VisitorAccess {
  const { access, publicUrl, basePath = '', log, view, events } = options
  if (access.type === 'anonymous') return anonymousAccess(access.token, access.caller)
  if (publicUrl === undefined)
    throw new GatehouseError('INVALID_CONFIG', { detail: 'console.publicUrl is required with console.auth' })
  const { issuer, clientId, clientSecret, scopes, roles, fetch, now = Date.now } = access
  const home = `${publicUrl}${basePath}`
  const provider = new Issuer({
    issuer,
    clientId,
    clientSecret,
    scopes,
    redirectUri: `${home}/callback`,
    allowHttp: isLoopbackHost(new URL(issuer).hostname),
    fetch,
    now,
  })
  const granted = makeRoles({
    settings: roles,
    server: view.server,
    events,
    log,
  })
  return loginAccess({
    issuer: provider,
    issuerName: issuer,
    roles: granted,
    publicUrl: home,
    now,
    log,
    acted,
  })
}

/**
 * In a build, returns the folder next to the program. When running from source, returns the output folder of the last
 * build.
 */
function builtAssets(here = import.meta.url): string {
  const isSource = extname(fileURLToPath(here)) === '.ts'
  return fileURLToPath(new URL(isSource ? '../../dist/console' : '../console', here))
}
