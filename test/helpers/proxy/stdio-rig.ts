/** The raw bridge of `proxy stdio` in this process. The test controls both of its streams. */
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { type ProxyInput, resolveProxyConfig } from '../../../runtime/config/index.ts'
import { type Log, silentLog } from '../../../runtime/net/index.ts'
import { runStdio } from '../../../runtime/proxy/index.ts'
import { untyped } from '../untyped.ts'

export interface StdioRig {
  /** Resolves when the bridge has ended, with false when its first message reached no server. */
  readonly done: Promise<boolean>
  readonly input: PassThrough
  readonly output: PassThrough
  send(message: string | object): void
  /** The next line of the output. */
  next(): Promise<string>
  /** The next line as JSON. */
  message(): Promise<ReturnType<typeof JSON.parse>>
  /** Closes the input and waits for the end. */
  end(): Promise<boolean>
}

export interface StdioRigOptions {
  readonly input?: ProxyInput
  readonly drainMs?: number
  readonly signal?: AbortSignal
  readonly log?: Log
}

export function startStdio(t: Test, url: string, options: StdioRigOptions = {}): StdioRig {
  const input = new PassThrough()
  const output = new PassThrough()
  const waiting: ((line: string) => void)[] = []
  const seen: string[] = []
  createInterface({ input: output }).on('line', (line) => {
    const next = waiting.shift()
    if (next) next(line)
    else seen.push(line)
  })
  const { origin, pathname, search } = new URL(url)
  const stop = new AbortController()
  const done = runStdio({
    config: resolveProxyConfig('stdio', { targetUri: origin + search, ...options.input }, {}),
    path: pathname,
    input,
    output,
    log: options.log ?? silentLog,
    notify() {},
    drainMs: options.drainMs ?? 5_000,
    signal: options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal,
  })
  t.teardown(async () => {
    stop.abort()
    await done
  })
  const next = (): Promise<string> => {
    const line = seen.shift()
    return line === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(line)
  }
  return {
    done,
    input,
    output,
    send(message) {
      input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
    },
    next,
    message: async () => untyped(JSON.parse(await next())),
    end() {
      input.end()
      return done
    },
  }
}

/** Sends `initialize` and the notification after it, like a client of the session era. */
export const initialize = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
} as const
export const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' } as const

/** `_meta` of a stateless request. */
export const statelessMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
} as const
