/** A virtual server with its console in this process, and requests like those of the console's pages. */
import { randomBytes } from 'node:crypto'
import { makeApprover } from '../../../runtime/tools/lock/approval/approver.ts'
import {
  type Approver,
  CallRecorder,
  type ConsoleOptions,
  startConsole,
} from '../../../runtime/console/index.ts'
import { explain } from '../../../runtime/tools/explain/index.ts'
import { anonymousCaller } from '../../../runtime/incoming/index.ts'
import { type Log, silentLog } from '../../../runtime/net/index.ts'
import { makeEvents } from '../../../runtime/observe/index.ts'
import type { RecordStream } from '../../../runtime/store/index.ts'
import type { VmcpServer } from '../../../runtime/vmcp/index.ts'
import { type BackendInput, startTestVmcp } from '../vmcp/vmcp.ts'
import { type EventReader, readEvents } from './events.ts'

export interface ConsoleReply {
  readonly status: number
  readonly headers: Headers
  readonly json: Record<string, unknown>
  readonly text: string
}

export interface TestConsole {
  readonly vmcp: VmcpServer
  /** Ends with a slash. */
  readonly url: string
  readonly token: string
  /** Sends a request to the API, with the launch token unless `headers` replace it. */
  api(
    path: string,
    init?: { method?: string; body?: unknown; headers?: Record<string, string> },
  ): Promise<ConsoleReply>
  /** Opens an event stream of the API. */
  events(path: string, headers?: Record<string, string>): Promise<EventReader>
  close(): Promise<void>
}

/** A console without a login. */
export async function startTestConsole(
  backends: Readonly<Record<string, string | BackendInput>>,
  more: Readonly<Record<string, unknown>> = {},
  options: {
    readonly ringBytes?: number
    readonly assets?: string
    readonly approver?: Approver
    readonly shared?: RecordStream
    readonly log?: Log
    readonly payloads?: 'none' | 'failures' | 'all'
    readonly login?: { readonly port: number; readonly access: ConsoleOptions['access'] }
  } = {},
): Promise<TestConsole> {
  const token = randomBytes(32).toString('base64url')
  const events = makeEvents()
  const recorder = new CallRecorder({
    events,
    payloads: options.payloads,
    ...(options.ringBytes ? { ringBytes: options.ringBytes } : {}),
  })
  const vmcp = await startTestVmcp(backends, more, { events, recorder })
  const opened = await startConsole({
    view: vmcp.view,
    explain: async (question, caller) => explain(await vmcp.view.snapshot(caller), question),
    approver: options.approver ?? (await makeApprover({ env: {}, toolLocks: () => vmcp.view.toolLocks() })),
    recorder,
    shared: options.shared,
    events,
    version: '1.2.3',
    host: '127.0.0.1',
    port: options.login?.port ?? 0,
    publicUrl: options.login && `http://127.0.0.1:${options.login.port}`,
    access: options.login?.access ?? { type: 'anonymous', token, caller: anonymousCaller() },
    assets: options.assets,
    log: options.log ?? silentLog,
  })
  let csrf: string | undefined
  const api: TestConsole['api'] = async (path, { method = 'GET', body, headers = {} } = {}) => {
    if (method !== 'GET' && csrf === undefined) csrf = String((await api('me')).json['csrf'])
    const response = await fetch(`${opened.url}api/v1/${path}`, {
      method,
      headers: {
        'x-gatehouse-launch': token,
        ...(method === 'GET' ? {} : { origin: new URL(opened.url).origin, 'x-gatehouse-csrf': csrf ?? '' }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, json: jsonOf(text), text }
  }
  return {
    vmcp,
    url: opened.url,
    token,
    api,
    events: (path, headers = {}) =>
      readEvents(`${opened.url}api/v1/${path}`, { 'x-gatehouse-launch': token, ...headers }),
    async close() {
      await opened.close()
      await vmcp.close()
    },
  }
}

/** A browser that uses a console with a login: cookies, redirects, and requests like those of the pages. */
export class Browser {
  readonly cookies = new Map<string, string>()
  /** Ends with a slash. */
  readonly url: string

  constructor(url: string) {
    this.url = url
  }

  /** Follows redirects and returns the last response. */
  async go(start: string): Promise<Response> {
    let url = new URL(start, this.url)
    for (let hop = 0; hop < 20; hop++) {
      const response = await this.#fetch(url, { redirect: 'manual' })
      const location = response.headers.get('location')
      if (location === null) return response
      await response.arrayBuffer()
      url = new URL(location, url)
    }
    throw new Error('too many redirects')
  }

  /** Starts a login and returns its state, without visiting the provider. */
  async beginLogin(): Promise<string> {
    const response = await this.#fetch(new URL('login', this.url), { redirect: 'manual' })
    return new URL(response.headers.get('location') ?? '').searchParams.get('state') ?? ''
  }

  async #fetch(url: URL, init: RequestInit): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, {
      ...init,
      headers: { ...(init.headers as Record<string, string>), ...(cookie === '' ? {} : { cookie }) },
    })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';', 1)
      const name = pair.slice(0, pair.indexOf('='))
      if (/; Max-Age=0/.test(line)) this.cookies.delete(name)
      else this.cookies.set(name, pair.slice(name.length + 1))
    }
    return response
  }

  /** Opens an event stream of the API. */
  events(path: string): Promise<EventReader> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    return readEvents(`${this.url}api/v1/${path}`, { cookie })
  }

  async api(
    path: string,
    {
      method = 'GET',
      body,
      headers = {},
    }: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<ConsoleReply> {
    const response = await this.#fetch(
      new URL(path.startsWith('/') ? path.slice(1) : `api/v1/${path}`, this.url),
      {
        method,
        headers: {
          ...(method === 'GET' ? {} : { origin: new URL(this.url).origin }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      },
    )
    const text = await response.text()
    return { status: response.status, headers: response.headers, json: jsonOf(text), text }
  }
}

function jsonOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
