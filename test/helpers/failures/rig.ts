/**
 * A running virtual server with its console, in front of a simulated API server that stores its report, and every view
 * of it: log, `/status`, metrics, the condition that the real hooks derive from the report, and the console's API.
 */
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import type { CertificateFiles } from '../../../schemas/certificate/index.ts'
import type { HostedAuthServer } from '../../../runtime/authserver/index.ts'
import { type AuthServerOptions, withAuthServer } from '../../../runtime/cli/vmcp/auth-server.ts'
import { makeApprover } from '../../../runtime/tools/lock/approval/approver.ts'
import { vmcpEnvironment } from '../../../runtime/config/index.ts'
import { CallRecorder, startConsole } from '../../../runtime/console/index.ts'
import { explain } from '../../../runtime/tools/explain/index.ts'
import { anonymousCaller } from '../../../runtime/incoming/index.ts'
import { makeFetch } from '../../../runtime/net/index.ts'
import { logEvents, makeEvents, makeLog, openServingCertificate } from '../../../runtime/observe/index.ts'
import type { StartOptions, VmcpServer } from '../../../runtime/vmcp/index.ts'
import { entry, virtual, world } from '../../hooks/resources.ts'
import type { Condition, World } from '../../hooks/world.ts'
import { type RawBackendOptions, startRawBackend } from '../mcp/raw-backend.ts'
import { openSession } from '../mcp/wire.ts'
import { startTestVmcp } from '../vmcp/vmcp.ts'

export type Line = Readonly<Record<string, unknown>>

export interface Told {
  readonly lines: readonly Line[]
  readonly status: {
    readonly problem_details: readonly Line[]
    readonly recent_failures: readonly Line[]
    readonly problems: readonly string[]
    readonly backends: readonly Line[]
  }
  readonly metrics: string
  readonly report: { readonly problems: readonly Line[]; readonly backends: readonly Line[] }
  readonly conditions: readonly Condition[]
  readonly overview: {
    readonly problems: readonly Line[]
    readonly failures: readonly Line[]
    readonly backends: readonly Line[]
  }
  /** Problems on the console's configuration page. */
  readonly configPage: readonly Line[]
  readonly calls: readonly Line[]
}

export interface Rig {
  readonly vmcp: VmcpServer
  /** Checksum of the running configuration, as the hooks compute it. */
  readonly checksum: string
  /** The hooks write a new configuration that the pod has not applied. */
  changeConfig(): void
  /** The cluster's API server rejects every write. */
  refuseReports(): void
  /** Makes a call with a new client and ignores its result. */
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<void>
  /** Sends a request to the console's API. */
  api(path: string, init?: RequestInit): Promise<Response>
  /** The last report to the cluster. */
  reported(): Told['report']
  /** All views. */
  told(): Promise<Told>
}

export interface RigOptions extends StartOptions {
  /** Headers of calls. */
  readonly headers?: Readonly<Record<string, string>>
  /** Serves TLS. */
  readonly tls?: CertificateFiles
  /** The embedded authorization server's file, and the secrets that it names. */
  readonly authServerFile?: { readonly path: string; readonly env: Readonly<Record<string, string>> }
}

export const quick = {
  failureHandling: {
    healthCheckInterval: '200ms',
    healthCheckTimeout: '150ms',
    unhealthyThreshold: 2,
    partialFailureMode: 'best_effort',
  },
}

export async function rig(
  t: Test,
  backends: Parameters<typeof startTestVmcp>[0],
  more: Readonly<Record<string, unknown>> = {},
  { headers = {}, tls, authServerFile, ...options }: RigOptions = {},
): Promise<Rig> {
  const lines: Line[] = []
  const log = makeLog({ destination: { write: (line) => void lines.push(JSON.parse(line) as Line) } })
  const events = makeEvents(options.clock?.now)
  const recorder = new CallRecorder({ events })
  const cluster = makeCluster(Object.keys(backends))
  t.teardown(logEvents(events, log, options.clock))
  const certificate = tls && openServingCertificate(tls, events)
  t.teardown(() => certificate?.close())
  const authServer = authServerFile && (await openBeside(t, authServerFile, { log, events }))
  const vmcp = await startTestVmcp(
    backends,
    { telemetry: { enablePrometheusMetricsPath: true }, operational: quick, ...more },
    {
      log,
      events,
      recorder,
      certificate,
      authServer,
      configChecksum: cluster.checksum,
      env: {
        [vmcpEnvironment.namespace]: 'ns',
        [vmcpEnvironment.reportConfigMap]: 'report',
        [vmcpEnvironment.podName]: 'pod',
      },
      clusterApi: cluster.api,
      ...options,
    },
  )
  const token = randomBytes(32).toString('base64url')
  const console = await startConsole({
    view: vmcp.view,
    explain: async (question, caller) => explain(await vmcp.view.snapshot(caller), question),
    approver: await makeApprover({ env: {}, toolLocks: () => vmcp.view.toolLocks() }),
    recorder,
    events,
    version: '1.2.3',
    host: '127.0.0.1',
    port: 0,
    access: { type: 'anonymous', token, caller: anonymousCaller() },
    log,
  })
  t.teardown(async () => {
    await console.close()
    await vmcp.close()
  })
  const get = async (path: string): Promise<string> => (await fetch(`${vmcp.origin}${path}`)).text()
  const api = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${console.url}api/v1/${path}`, {
      ...init,
      headers: { 'x-gatehouse-launch': token, ...(init.headers as Record<string, string>) },
    })
  const page = async <T>(path: string): Promise<T> => (await (await api(path)).json()) as T
  return {
    vmcp,
    checksum: cluster.checksum,
    changeConfig: cluster.changeConfig,
    refuseReports: cluster.refuse,
    api,
    async call(name, args = {}) {
      const session = await openSession(vmcp.url, { headers })
      await session.request('tools/list')
      await session.request('tools/call', { name, arguments: args })
    },
    reported: cluster.reported,
    told: async () => ({
      lines,
      status: JSON.parse(await get('/status')) as Told['status'],
      metrics: await get('/metrics'),
      ...cluster.told(),
      overview: await page<Told['overview']>('overview'),
      configPage: (await page<{ problems: Line[] }>('config')).problems,
      calls: (await page<{ items: Line[] }>('calls?limit=200')).items,
    }),
  }
}

/** Opened as the command opens it, and closed at the end of the test. */
async function openBeside(
  t: Test,
  { path, env }: NonNullable<RigOptions['authServerFile']>,
  parts: Pick<AuthServerOptions, 'log' | 'events'>,
): Promise<HostedAuthServer | undefined> {
  const opened = Promise.withResolvers<HostedAuthServer | undefined>()
  const over = Promise.withResolvers<void>()
  const work = withAuthServer(path, { ...parts, env }, (server) => {
    opened.resolve(server)
    return over.promise
  })
  work.catch(opened.reject)
  t.teardown(() => {
    over.resolve()
    return work
  })
  return opened.promise
}

const server = virtual().metadata.name

const readyWorlds = new Map<string, World>()

/** A new world with the server and its backends, copied from an earlier one with the same backends. */
function readyWorld(backends: readonly string[]): World {
  const names = backends.join()
  const made = readyWorlds.get(names) ?? world(virtual(), ...backends.map((name) => entry(name))).ready()
  readyWorlds.set(names, made)
  return made.copy()
}

/** An API server that stores the report of one pod, and hooks that derive a status from it. */
function makeCluster(backends: readonly string[]) {
  let text = '{"problems":[],"backends":[]}'
  let isRefusing = false
  const hooks = readyWorld(backends)
  const closing = makeFetch()
  const answer = async (_url: string | URL, init?: { body?: unknown }): Promise<Response> => {
    if (isRefusing) return new Response(null, { status: 403 })
    const { data } = JSON.parse(String(init?.body)) as { data: Record<string, string | null> }
    text = data['pod.json'] ?? text
    return Response.json({ data })
  }
  return {
    checksum: checksumOf(hooks),
    api: {
      baseUrl: 'http://cluster',
      token: () => 'pod-token',
      fetch: Object.assign(answer as unknown as typeof closing, { close: () => closing.close() }),
    },
    refuse: () => {
      isRefusing = true
    },
    changeConfig: () => {
      hooks.apply(virtual({ config: { operational: { logLevel: 'debug' } } })).ready()
    },
    reported: () => JSON.parse(text) as Told['report'],
    told: (): Pick<Told, 'report' | 'conditions'> => {
      hooks.setData(`${server}-vmcp-status`, { 'pod.json': text }).settle()
      const { conditions } = hooks.get('VirtualMCPServer', server)['status'] as { conditions: Condition[] }
      return { report: JSON.parse(text) as Told['report'], conditions }
    },
  }
}

function checksumOf(hooks: World): string {
  const annotations = hooks.get('ConfigMap', `${server}-vmcp-config`).metadata['annotations']
  return (annotations as Record<string, string>)['gatehouse.dev/content-checksum'] ?? ''
}

/** Starts a backend without faults, unless the options add one. */
export async function backend(t: Test, options: RawBackendOptions = {}): Promise<string> {
  const raw = await startRawBackend(options)
  t.teardown(() => raw.close())
  return raw.url
}
