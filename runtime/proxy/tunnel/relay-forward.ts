/**
 * Forwards one public request through a tunnel byte by byte. Both bodies are streamed and not stored. MCP is not
 * inspected here; the proxy at the other end does that.
 *
 * The relay drops only hop-by-hop headers (RFC 9110 section 7.6.1). If a tunnel breaks during a response, the response
 * is aborted.
 */
import { addTrailers, clientGone, sendHead, waitForDrain } from '../forward/client-side.ts'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { GatehouseError, hopByHop } from '../../../schemas/index.ts'
import {
  type DispatchController,
  type Dispatcher,
  type DispatchHandler,
  registerStream,
  connectionHeaderNames,
  repeatedSingleton,
  sendProblem,
} from '../../net/index.ts'
import { ProxyExchange, type Upgrade } from '../model/exchange.ts'
import { acceptUpgrade } from '../forward/upgrade.ts'

/** Resolves when the exchange has ended for any reason. Never rejects. */
export function forward(
  dispatcher: Dispatcher,
  origin: string,
  req: IncomingMessage,
  res: ServerResponse,
  upgrade: Upgrade | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    const handler = new RelayedResponse(new ProxyExchange(req, res, upgrade), resolve)
    const path = req.url ?? '/'
    if (!path.startsWith('/') || repeatedSingleton(req.rawHeaders) !== undefined) {
      handler.refuse(new GatehouseError('BAD_REQUEST'))
      return
    }
    if (req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue()
    const hasBody =
      req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined
    dispatcher.dispatch(
      {
        origin,
        path,
        method: req.method ?? 'GET',
        headers: requestLines(req),
        body: hasBody ? req : null,
        headersTimeout: 0,
        upgrade: upgrade ? 'websocket' : null,
      },
      handler,
    )
  })
}

function requestLines({ rawHeaders, headers }: IncomingMessage): string[] {
  const named = connectionHeaderNames(headers.connection)
  const lines: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const lower = name.toLowerCase()
    if (hopByHop.has(lower) || lower === 'expect' || named.includes(lower)) continue
    lines.push(name, rawHeaders[i + 1] ?? '')
  }
  return lines
}

class RelayedResponse implements DispatchHandler {
  readonly #exchange: ProxyExchange
  readonly #finished: () => void
  readonly #onClose = (): void => {
    this.#controller?.abort(clientGone)
    this.#finished()
  }
  #controller: DispatchController | undefined

  constructor(exchange: ProxyExchange, done: () => void) {
    this.#exchange = exchange
    this.#finished = done
    exchange.res.once('close', this.#onClose)
  }

  #done(): void {
    this.#exchange.res.off('close', this.#onClose)
    this.#finished()
  }

  refuse(error: GatehouseError): void {
    sendProblem(this.#exchange.res, error)
    this.#done()
  }

  onRequestStart(controller: DispatchController): void {
    this.#controller = controller
    if (this.#exchange.res.destroyed) controller.abort(clientGone)
  }

  onRequestUpgrade(
    _controller: DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    socket: Duplex,
  ): void {
    acceptUpgrade(this.#exchange, status, headers, socket)
    // The request counts as in flight until its tunnel traffic ends.
    socket.once('close', () => this.#done())
  }

  onResponseStart(
    _controller: DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    text?: string,
  ): void {
    if (status < 200) return
    const { res } = this.#exchange
    const lines = responseLines(headers)
    sendHead(res, status, text, lines)
    if (headers['content-length'] !== undefined) return
    // Send the head of a stream without waiting for its first byte.
    res.flushHeaders()
    if (/^text\/event-stream\b/i.test(headers['content-type'] ?? '')) registerStream(res, () => res.end())
  }

  onResponseData(controller: DispatchController, chunk: Buffer): void {
    const { res } = this.#exchange
    if (!res.write(chunk)) waitForDrain(res, controller)
  }

  onResponseEnd(_controller: DispatchController, trailers: IncomingHttpHeaders): void {
    const { res } = this.#exchange
    addTrailers(res, trailers)
    res.end()
    this.#done()
  }

  onResponseError(_controller: DispatchController, cause: Error): void {
    const { res } = this.#exchange
    if (cause === clientGone) return
    if (res.headersSent) res.destroy()
    else
      sendProblem(
        res,
        cause instanceof GatehouseError ? cause : new GatehouseError('BACKEND_UNREACHABLE', { cause }),
      )
    this.#done()
  }
}

function responseLines(headers: IncomingHttpHeaders): string[] {
  const named = connectionHeaderNames(headers.connection)
  return Object.entries(headers).flatMap(([name, value]) => {
    if ((hopByHop.has(name) && name !== 'trailer') || named.includes(name) || value === undefined) return []
    return (Array.isArray(value) ? value : [value]).flatMap((one) => [name, one])
  })
}
