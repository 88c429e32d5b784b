/** A backend whose tools a test changes at run time, and virtual servers that pin them. */
import type { Test } from 'tap'
import { type RawBackend, type RawBackendOptions, startRawBackend } from '../mcp/raw-backend.ts'
import { openSession, stateless, type WireAnswer } from '../mcp/wire.ts'
import { makeEvents } from '../../../runtime/observe/index.ts'
import type { ObservedEvent } from '../../../runtime/observe/events/stream.ts'
import type { StartOptions } from '../../../runtime/vmcp/index.ts'
import { bareNames, startTestVmcp, vmcpConfig } from './vmcp.ts'

export const approved =
  '{"name":"read","description":"Reads a file","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"annotations":{"readOnlyHint":true}}'
export const other = '{"name":"list","description":"Lists files","inputSchema":{"type":"object"}}'
export const listChanged = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'

/** Returns a definition with other values for some members. */
export function changed(json: string, change: object): string {
  return JSON.stringify({ ...JSON.parse(json), ...change })
}

export function lockOf(backend: string, tools: readonly string[], more: object = {}) {
  const items = tools.map((definition) => ({ name: JSON.parse(definition).name as string, definition }))
  return { backend, tools: items, ...more }
}

export interface Changing extends RawBackend {
  tools: readonly string[]
}

export async function startChanging(
  t: Test,
  tools: readonly string[],
  options: RawBackendOptions = {},
): Promise<Changing> {
  const state = { tools }
  const backend = await startRawBackend({ tools: () => state.tools, ...options })
  t.teardown(() => backend.close())
  return Object.defineProperty(backend, 'tools', {
    get: () => state.tools,
    set(changed: readonly string[]) {
      state.tools = changed
    },
  }) as Changing
}

export type Mode = 'observe' | 'warn' | 'freeze' | 'block'
export const modes: readonly Mode[] = ['observe', 'warn', 'freeze', 'block']

const isFuzz = Number(process.env['FC_RUNS'] ?? 300) > 300

/** The modes without `observe`, which differs from `warn` only in the log. With `make fuzz`, all modes. */
export const distinctModes: readonly Mode[] = isFuzz ? modes : ['warn', 'freeze', 'block']

/** Returns the modes in which a row of a table runs: all modes for the first row. */
export function modesOfRow(at: number): readonly Mode[] {
  return at === 0 ? modes : distinctModes
}

/** Applies one mode to every difference; `freeze` blocks new items. */
export function pinning(mode: Mode, more: object = {}) {
  return { onChanged: mode, onNew: mode === 'freeze' ? 'block' : mode, ...more }
}

export const workflow = {
  name: 'flow',
  description: 'Reads twice',
  parameters: { type: 'object', properties: { path: { type: 'string' } } },
  steps: [{ id: 'one', type: 'tool', tool: 'read', arguments: { path: '{{.params.path}}' } }],
}

export interface Pinned {
  readonly url: string
  /** Writes another configuration to the server's file. */
  reload(config: object): void
  readonly events: readonly ObservedEvent[]
  /** The JSON of `/status`. */
  status(): Promise<Status>
  /** Resolves with the next event of a type, or with one that has already arrived. */
  event(type: string, wanted?: (fields: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>
}

export interface Status {
  readonly backends: readonly {
    readonly name: string
    readonly pinning?: {
      readonly lock: string
      readonly pinned: number
      readonly new: number
      readonly changed: number
      readonly removed: number
      readonly drift: readonly {
        name: string
        kind: string
        state: string
        parts: string[]
        digest: string
      }[]
    }
  }[]
  readonly problems: readonly string[]
}

export async function startPinned(
  t: Test,
  backends: Readonly<Record<string, string>>,
  config: object,
  options: StartOptions = {},
): Promise<Pinned> {
  const events = makeEvents(Date.now)
  const seen: ObservedEvent[] = []
  const waiting = new Set<() => void>()
  events.listen((event) => {
    seen.push(event)
    for (const wake of waiting) wake()
  })
  const server = await startTestVmcp(
    backends,
    { aggregation: bareNames(...Object.keys(backends)), ...config },
    { events, ...options },
  )
  t.teardown(() => server.close())
  return {
    url: server.url,
    reload: (changed) =>
      server.reload(vmcpConfig(backends, { aggregation: bareNames(...Object.keys(backends)), ...changed })),
    events: seen,
    status: async () => (await (await fetch(`${server.origin}/status`)).json()) as Status,
    async event(type, wanted = () => true) {
      for (;;) {
        const found = seen.find((one) => one.type === type && wanted({ ...one.fields }))
        if (found) return { ...found.fields }
        await new Promise<void>((resolve) => {
          const wake = (): void => {
            waiting.delete(wake)
            resolve()
          }
          waiting.add(wake)
        })
      }
    },
  }
}

/** Connects a client of either era. */
export interface EraClient {
  readonly era: string
  request(method: string, params?: Record<string, unknown>): Promise<WireAnswer>
}

export async function bothEras(
  url: string,
  headers: Record<string, string> = {},
): Promise<readonly EraClient[]> {
  const session = await openSession(url, { headers })
  return [
    { era: 'session', request: (method, params) => session.request(method, params) },
    { era: 'stateless', request: (method, params) => stateless(url, method, params, { headers }) },
  ]
}

interface Listed {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: object
}

export async function listed({ request }: EraClient): Promise<readonly Listed[]> {
  return ((await request('tools/list')).response?.result?.['tools'] ?? []) as Listed[]
}

/** Outcome of a call: the text of its result, `error <code>`, or `failed: <text>`. */
export async function called(
  { request }: EraClient,
  name: string,
  args: Record<string, unknown> = { path: 'x' },
): Promise<string> {
  const { response, status } = await request('tools/call', { name, arguments: args })
  if (!response) return `status ${status}`
  if (response.error) return `error ${response.error.code}`
  const { content, isError } = response.result as { content?: { text: string }[]; isError?: boolean }
  const text = content?.map((one) => one.text).join('') ?? ''
  return isError ? `failed: ${text}` : text
}
