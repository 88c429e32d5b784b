/** Backends whose offers a test replaces, and virtual servers that pin them and report differences everywhere. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { VmcpServer } from '../../../runtime/vmcp/index.ts'
import {
  type RawBackend,
  type RawBackendOptions,
  type RawRequest,
  startRawBackend,
  textResult,
} from '../mcp/raw-backend.ts'
import { until } from '../redis.ts'
import { lockOf, type Status, workflow } from './pinning.ts'
import { type RuggedClient, ruggedClients } from './rug-pull-clients.ts'
import { rig as toldRig, type Rig as Told } from '../failures/rig.ts'
import { bareNames, startTestVmcp, vmcpConfig } from './vmcp.ts'

/** JSON texts of the items that one backend offers. */
export interface Offer {
  readonly tools?: readonly string[]
  readonly prompts?: readonly string[]
  readonly templates?: readonly string[]
  readonly instructions?: string
}

export type Offers = Readonly<Record<string, Offer>>
/** Returns the offer of a backend for this request. */
export type OfferFor = (request: Pick<RawRequest, 'headers'>) => Offer

export interface OfferingBackend extends RawBackend {
  offer: Offer | OfferFor
  /** Simulates a restarted process: no session is known, no stream is open. */
  forget(): void
}

const kinds = ['tools', 'prompts', 'resources'] as const
const capabilities = `{${kinds.map((kind) => `"${kind}":{"listChanged":true}`).join()},"completions":{}}`

/** A backend that names itself in all its responses. */
export async function startOffering(
  t: Test,
  name: string,
  offer: Offer | OfferFor,
  options: RawBackendOptions = {},
): Promise<OfferingBackend> {
  const state = { offer }
  const offered = (request: Pick<RawRequest, 'headers'>): Offer =>
    typeof state.offer === 'function' ? state.offer(request) : state.offer
  const list = (member: string, items: readonly string[] = []) => `{"${member}":[${items.join()}]}`
  const backend = await startRawBackend({
    capabilities,
    instructions: () => offered({ headers: {} }).instructions,
    responses: {
      'tools/list': (request) => list('tools', offered(request).tools),
      'prompts/list': (request) => list('prompts', offered(request).prompts),
      'resources/list': () => list('resources'),
      'resources/templates/list': (request) => list('resourceTemplates', offered(request).templates),
      'tools/call': ({ params }) => textResult(`reached:${name} ${JSON.stringify(params['arguments'])}`),
      'prompts/get': ({ params }) =>
        JSON.stringify({
          messages: [
            {
              role: 'user',
              content: { type: 'text', text: `reached:${name} ${JSON.stringify(params['arguments'])}` },
            },
          ],
        }),
      'resources/read': ({ params }) =>
        JSON.stringify({ contents: [{ uri: params['uri'], text: `reached:${name}` }] }),
      'completion/complete': () => JSON.stringify({ completion: { values: [`reached:${name}`] } }),
    },
    ...options,
  })
  t.teardown(() => backend.close())
  const forget = (): void => {
    backend.sessions.clear()
    for (const stream of backend.streams) stream.destroy()
    backend.streams.clear()
  }
  return Object.defineProperty(Object.assign(backend, { forget }), 'offer', {
    get: () => state.offer,
    set(next: Offer | OfferFor) {
      state.offer = next
    },
  }) as OfferingBackend
}

/** Returns the lock that approves an offer. */
export function lockFor(
  backend: string,
  { tools = [], prompts, templates, instructions }: Offer,
  more: object = {},
) {
  const items = (list: readonly string[] | undefined, key: string) =>
    list?.map((definition) => ({ name: (JSON.parse(definition) as Record<string, string>)[key], definition }))
  return lockOf(backend, tools, {
    ...(prompts && { prompts: items(prompts, 'name') }),
    ...(templates && { resourceTemplates: items(templates, 'uriTemplate') }),
    ...(instructions !== undefined && { instructions }),
    ...more,
  })
}

export function announceAll(backend: RawBackend): void {
  for (const kind of kinds) backend.push(`{"jsonrpc":"2.0","method":"notifications/${kind}/list_changed"}`)
}

type Line = Readonly<Record<string, unknown>>

export interface Rig {
  readonly vmcp: VmcpServer
  readonly backends: Readonly<Record<string, OfferingBackend>>
  /** One client of each era, for a server with a workflow and scripts. */
  readonly clients: readonly RuggedClient[]
  /** One client of each era, for a server with tool search. Empty without `search`. */
  readonly searching: readonly RuggedClient[]
  /** Connects more clients to the first server. */
  newClients(): Promise<readonly RuggedClient[]>
  /** All responses to the clients. */
  readonly answers: readonly string[]
  /** Replaces the offers of backends, announces the change, and waits until the backends were listed again. */
  offer(offers: Readonly<Record<string, Offer | OfferFor>>): Promise<void>
  /** Differences that the first server found, in the form of Row.drift. */
  found(): Promise<readonly string[]>
  /** Waits until all servers find exactly these differences; see Row.drift. */
  drifted(drift: readonly string[]): Promise<void>
  told(drift: readonly string[]): Promise<{
    readonly lines: readonly Line[]
    readonly metrics: string
    /** `denial_reason` of the audit lines that have one. */
    readonly denials: readonly string[]
    /** Differences in the report to the cluster, in the form of Row.drift. */
    readonly reported: readonly string[]
  }>
  /** Changes the values of some members in the files of all servers. */
  reload(change: Readonly<Record<string, unknown>>): void
  /** Returns all reports of the first server: the report to the cluster, `/status` and so on. */
  everywhere(): ReturnType<Told['told']>
  /** The last report of the first server to the cluster. */
  reported(): ReturnType<Told['reported']>
}

export interface RigOptions {
  readonly offers: Readonly<Record<string, Offer | OfferFor>>
  /** The tool of the workflow's step. */
  readonly tool?: string
  /** Starts a second server, with tool search. */
  readonly search?: boolean
  readonly config: Readonly<Record<string, unknown>>
  /** Default: all offered items are approved. */
  readonly toolLocks?: readonly object[]
  /** Headers that clients send. */
  readonly headers?: Record<string, string>
  /** Capabilities that the server advertises. */
  readonly advertise?: 'backends'
  /** Applies to every backend. */
  readonly before?: RawBackendOptions['before']
  /** Called for each session at a backend, with the capabilities of its client. */
  readonly opened?: (session: string, capabilities: Readonly<Record<string, unknown>>) => void
}

export async function startRugPull(
  t: Test,
  { offers, tool = 'read', search, config, toolLocks, headers = {}, before, opened, advertise }: RigOptions,
): Promise<Rig> {
  const backends: Record<string, OfferingBackend> = {}
  for (const [name, offer] of Object.entries(offers))
    backends[name] = await startOffering(t, name, offer, {
      ...(before && { before }),
      ...(opened && { opened }),
    })
  const urls = Object.fromEntries(Object.entries(backends).map(([name, { url }]) => [name, url]))
  const logFile = join(t.testdir({}), 'audit.log')
  const common = {
    aggregation: bareNames(...Object.keys(urls)),
    operational: {},
    toolLocks:
      toolLocks ??
      Object.entries(offers).flatMap(([name, offer]) =>
        typeof offer === 'function' ? [] : [lockFor(name, offer)],
      ),
    ...config,
  }
  const steps = [{ id: 'one', type: 'tool', tool, arguments: { path: '{{.params.path}}' } }]
  const settings = {
    ...common,
    telemetry: { enablePrometheusMetricsPath: true },
    audit: { enabled: true, logFile },
    compositeTools: [{ ...workflow, steps }],
    codeMode: { enabled: true },
  }
  const searchSettings = { ...common, optimizer: {} }
  const main = await toldRig(t, urls, settings, advertise && { advertise })
  const searchServers = search ? [await startTestVmcp(urls, searchSettings)] : []
  t.teardown(() => Promise.all(searchServers.map((server) => server.close())))
  const answers: string[] = []
  const clients = await ruggedClients(main.vmcp.url, answers, { headers })
  const searching = (
    await Promise.all(searchServers.map(({ url }) => ruggedClients(url, answers, { headers })))
  ).flat()
  const everybody = [...clients, ...searching]
  const statusOf = async (vmcp: VmcpServer) => (await (await fetch(`${vmcp.origin}/status`)).json()) as Status
  return {
    vmcp: main.vmcp,
    backends,
    clients,
    searching,
    newClients: () => ruggedClients(main.vmcp.url, answers, { headers }),
    answers,
    async offer(next) {
      const lists = (name: string) =>
        backends[name]?.requests.filter(({ method }) => method === 'tools/list').length ?? 0
      const before = new Map(Object.keys(next).map((name) => [name, lists(name)]))
      for (const [name, offer] of Object.entries(next)) {
        const backend = backends[name]
        if (!backend) throw new Error(`no backend ${name}`)
        backend.offer = offer
        announceAll(backend)
      }
      await until(async () => {
        await Promise.all(everybody.map((client) => client.request('tools/list')))
        return [...before].every(([name, count]) => lists(name) > count)
      })
    },
    found: async () => driftOf((await statusOf(main.vmcp)).backends),
    async drifted(drift) {
      for (const server of [main.vmcp, ...searchServers])
        await until(async () => {
          await Promise.all(everybody.map((client) => client.request('tools/list')))
          return sameLines(driftOf((await statusOf(server)).backends), drift)
        })
    },
    reload(change) {
      main.vmcp.reload(vmcpConfig(urls, { ...settings, ...change }))
      for (const server of searchServers) server.reload(vmcpConfig(urls, { ...searchSettings, ...change }))
    },
    everywhere: () => main.told(),
    reported: main.reported,
    async told(drift) {
      await until(() => sameLines(driftOf(reportedIn({ report: main.reported() })), drift))
      const { lines, metrics, report } = await main.told()
      return { lines, metrics, denials: denialsIn(logFile), reported: driftOf(reportedIn({ report })) }
    },
  }
}

interface Compared {
  readonly name: string
  readonly pinning?: { readonly drift: readonly Record<string, unknown>[] }
}

function driftOf(backends: readonly Compared[]): readonly string[] {
  return backends
    .flatMap(({ name: backend, pinning }) =>
      (pinning?.drift ?? []).map(({ kind, name, state, parts }) =>
        [backend, kind, name || '-', state, (parts as string[]).join()].join(' ').trim(),
      ),
    )
    .sort()
}

function reportedIn({ report }: { readonly report: object }): readonly Compared[] {
  const { pinning = [] } = report as {
    pinning?: { backend: string; drift: readonly Record<string, unknown>[] }[]
  }
  return pinning.map(({ backend, drift }) => ({ name: backend, pinning: { drift } }))
}

function sameLines(a: readonly string[], b: readonly string[]): boolean {
  return JSON.stringify(a) === JSON.stringify([...b].sort())
}

function denialsIn(logFile: string): readonly string[] {
  return readFileSync(logFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { metadata?: { extra?: { denial_reason?: string } } })
    .flatMap(({ metadata }) => metadata?.extra?.denial_reason ?? [])
}
