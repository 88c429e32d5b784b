/**
 * Messages between the console and the page of an app in a frame. The page is hostile: the bridge accepts messages only
 * from the frame's window and its opaque origin, limits their number and size, and asks the user before each tool call.
 * Source: MCP Apps, "Communication protocol".
 */
import type { TryEvent } from '../../api.ts'

const revision = '2026-01-26'
const maxMessages = 200
const windowMs = 10_000
const maxArguments = 64 * 1024
const maxName = 256
const maxWaiting = 4
const [minHeight, maxHeight] = [80, 800]
const codes = { invalidParams: -32602, unknownMethod: -32601, refused: -32000 }

/** A tool call that the page requests. */
export interface AppCall {
  /** Distinguishes the calls of a bridge. */
  readonly key: number
  readonly name: string
  /** JSON text of the arguments. */
  readonly arguments: string
  allow(): void
  refuse(): void
}

type CallEnd = Pick<Extract<TryEvent, { readonly type: 'done' }>, 'result' | 'truncated' | 'error'>

interface ReceivedMessage {
  readonly source: unknown
  readonly origin: string
  readonly data: unknown
}

export interface AppBridgeOptions {
  readonly frame: { postMessage(message: unknown, targetOrigin: string): void }
  /** JSON values of the tool's definition, and of the run's arguments and result. */
  readonly tool: unknown
  readonly input: unknown
  readonly result: unknown
  readonly theme: 'light' | 'dark'
  /** Runs a tool of the app's own server. Resolves with the outcome of the run, or rejects with the reason. */
  readonly call: (name: string, args: string) => Promise<CallEnd>
  readonly onCalls: (waiting: readonly AppCall[]) => void
  readonly onHeight: (height: number) => void
}

type Fields = Readonly<Record<string, unknown>>

export class AppBridge {
  readonly #options: AppBridgeOptions
  #waiting: readonly AppCall[] = []
  #running = 0
  #nextKey = 1
  #received: number[] = []
  #isInitialized = false

  constructor(options: AppBridgeOptions) {
    this.#options = options
  }

  /** Handles a message event of the window. Ignores messages of other windows. */
  receive({ source, origin, data }: ReceivedMessage): void {
    if (source !== this.#options.frame || origin !== 'null' || !this.#admit()) return
    const { jsonrpc, id, method, params } = fieldsOf(data)
    if (jsonrpc !== '2.0' || typeof method !== 'string') return
    if (typeof id === 'string' || typeof id === 'number') this.#request(id, method, fieldsOf(params))
    else this.#notification(method, fieldsOf(params))
  }

  #admit(): boolean {
    const now = Date.now()
    this.#received = this.#received.filter((at) => now - at < windowMs)
    if (this.#received.length >= maxMessages) return false
    this.#received.push(now)
    return true
  }

  #notification(method: string, { height }: Fields): void {
    if (method === 'ui/notifications/initialized' && !this.#isInitialized) {
      this.#isInitialized = true
      this.#send({ method: 'ui/notifications/tool-input', params: { arguments: this.#options.input } })
      this.#send({ method: 'ui/notifications/tool-result', params: this.#options.result })
    }
    if (method === 'ui/notifications/size-changed' && typeof height === 'number' && Number.isFinite(height))
      this.#options.onHeight(Math.min(maxHeight, Math.max(minHeight, Math.ceil(height))))
  }

  #request(id: string | number, method: string, params: Fields): void {
    switch (method) {
      case 'ui/initialize':
        return this.#send({ id, result: this.#initializeResult() })
      case 'ping':
        return this.#send({ id, result: {} })
      case 'ui/request-display-mode':
        return this.#send({ id, result: { mode: 'inline' } })
      case 'tools/call':
        return this.#call(id, params)
      default:
        return this.#fail(id, codes.unknownMethod, 'The console does not support this method.')
    }
  }

  #initializeResult() {
    const { tool, theme } = this.#options
    return {
      protocolVersion: revision,
      hostInfo: { name: 'gatehouse-console', version: '1' },
      hostCapabilities: { serverTools: {} },
      hostContext: {
        theme,
        displayMode: 'inline',
        availableDisplayModes: ['inline'],
        containerDimensions: { maxHeight },
        toolInfo: { tool },
      },
    }
  }

  #call(id: string | number, params: Fields): void {
    const { name } = params
    const args = jsonOf(params['arguments'] ?? {})
    if (typeof name !== 'string' || name === '' || name.length > maxName || args === undefined)
      return this.#fail(id, codes.invalidParams, 'The name or the arguments of the call are invalid.')
    if (this.#waiting.length + this.#running >= maxWaiting)
      return this.#fail(id, codes.refused, 'Too many calls are waiting.')
    const call: AppCall = {
      key: this.#nextKey++,
      name,
      arguments: args,
      allow: () => {
        if (!this.#remove(call)) return
        this.#running++
        void this.#run(id, call).finally(() => this.#running--)
      },
      refuse: () => {
        if (this.#remove(call)) this.#fail(id, codes.refused, 'The user refused the call.')
      },
    }
    this.#setWaiting([...this.#waiting, call])
  }

  async #run(id: string | number, { name, arguments: args }: AppCall): Promise<void> {
    try {
      const { result, truncated, error } = await this.#options.call(name, args)
      if (result !== undefined && !truncated) this.#send({ id, result: JSON.parse(result) as unknown })
      else this.#fail(id, error?.code ?? codes.refused, error?.message ?? 'The result is too large.')
    } catch (error) {
      this.#fail(id, codes.refused, error instanceof Error ? error.message : 'The call failed.')
    }
  }

  #remove(call: AppCall): boolean {
    if (!this.#waiting.includes(call)) return false
    this.#setWaiting(this.#waiting.filter((one) => one !== call))
    return true
  }

  #setWaiting(waiting: readonly AppCall[]): void {
    this.#waiting = waiting
    this.#options.onCalls(waiting)
  }

  #fail(id: string | number, code: number, message: string): void {
    this.#send({ id, error: { code, message } })
  }

  /** No target origin matches the opaque origin of the frame. The console's policy blocks other sites in the frame. */
  #send(message: Fields): void {
    this.#options.frame.postMessage({ jsonrpc: '2.0', ...message }, '*')
  }
}

/** Returns the JSON text of a value; undefined if it is too long, or the value has a cycle or another invalid part. */
function jsonOf(value: unknown): string | undefined {
  try {
    const text = JSON.stringify(value)
    return text.length > maxArguments ? undefined : text
  } catch {
    return undefined
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
