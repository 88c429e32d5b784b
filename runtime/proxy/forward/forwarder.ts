/**
 * Sends a request to the target and ensures that the client gets exactly one response. Before the forwarder writes
 * anything to the client, it follows redirects on the target's own authority, reopens a lost session, and renews a
 * rejected credential. The forwarder also repeats a request whose DPoP proof lacks the target's nonce.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import type { TargetAddress } from '../../config/index.ts'
import type { Dispatcher, Log } from '../../net/index.ts'
import {
  headerName,
  mayEnterNextSession,
  mayResend,
  sessionRefusal,
  sessionVerdict,
} from '../../mcp/index.ts'
import type { OutgoingRequest } from '../../outgoing/index.ts'
import type { TargetCredential } from '../model/credential.ts'
import type { ProxyExchange } from '../model/exchange.ts'
import { recoverSession } from '../session/recovery.ts'
import { isMcpRequest, leavesProxy, maxRedirects, redirectPath, redirectRefused } from './redirect.ts'
import { decodeRefusal } from './refusal-body.ts'
import {
  type ResponsePolicy,
  type DiscardedResponse,
  type RelayDecision,
  ResponseRelay,
} from './response-relay.ts'
import { type HeaderRules, requestHeaders } from './request-headers.ts'
import { firstValue } from './response-headers.ts'
import { maySetState } from '../session/session-state.ts'
import type { ProxiedSession } from '../model/session.ts'
import type { ProxiedSessionTable } from '../session/sessions.ts'
import { targetPath } from './target.ts'

/** Maximum number of renewals per request: one for a new token and one for a new login. */
const maxRenewals = 2

/** Receives the outcome of each attempt. */
export interface TargetWatch {
  /** Called when the target responds with any status. */
  responded(): void
  /** Called when the target cannot be reached. */
  unreachable(): void
  /** Called when a request in a session succeeds. */
  sessionWorks(): void
  /** Called when a session that the target had lost cannot be reopened. */
  sessionFailed(): void
}

export interface ForwarderOptions {
  readonly target: TargetAddress
  readonly dispatcher: Dispatcher
  readonly headers: HeaderRules
  readonly sessions: ProxiedSessionTable
  readonly credential: TargetCredential | undefined
  /** Time limit for the target's response headers; not applied to event streams. 0 disables it. */
  readonly headersTimeoutMs: number
  /** This proxy's path prefix as clients see it; '' when there is none. */
  readonly endpointPrefix: string
  /** Uses `X-Forwarded-Prefix` when no prefix is configured. */
  readonly trustForwardedPrefix: boolean
  readonly watch: TargetWatch
  readonly log: Log
}

/** Returns the last stage of the pipeline. The stage rejects with GatehouseError only if nothing has been written. */
export function makeForwarder(options: ForwarderOptions): (exchange: ProxyExchange) => Promise<void> {
  return function forward(exchange) {
    return new Forwarding(options, exchange).run()
  }
}

/** The next step after a response has been withheld from the client. */
type Next = 'redirect' | 'recover' | 'renew' | 'repeat' | 'refuse' | 'refuse stream' | 'refuse redirect'

/** A request and all of its attempts. */
class Forwarding implements ResponsePolicy {
  readonly #options: ForwarderOptions
  readonly #exchange: ProxyExchange
  #path: string
  #hops = 0
  #recovered = false
  #renewals = 0
  /** True when the request was repeated with a nonce for the current credential. */
  #hasRepeated = false
  #next: Next = 'redirect'
  #headers: string[] = []
  /** The target's session id in the current attempt. */
  #sentId: string | undefined
  readonly rules: ResponsePolicy['rules']
  watchEvents: ResponsePolicy['watchEvents']

  constructor(options: ForwarderOptions, exchange: ProxyExchange) {
    this.#options = options
    this.#exchange = exchange
    this.#path = targetPath(options.target, exchange.req.method, exchange.path, exchange.query)
    this.rules = {
      sessionId: exchange.session?.clientId,
      hideChallenge: options.credential?.ownsAuthorization ?? false,
    }
  }

  get targetOrigin(): string {
    return this.#options.target.origin
  }

  /** URL of the current attempt. */
  get #url(): string {
    return this.#options.target.origin + this.#path
  }

  get endpointPrefix(): string {
    const { endpointPrefix, trustForwardedPrefix } = this.#options
    if (endpointPrefix !== '' || !trustForwardedPrefix) return endpointPrefix
    const given = this.#exchange.req.headers['x-forwarded-prefix']
    return typeof given === 'string' && /^(?:\/[\w.~-]+)+$/.test(given) ? given : ''
  }

  async run(): Promise<void> {
    for (;;) {
      this.#prepare()
      const lines = this.#options.credential?.lines(this.#exchange, () => this.#asRequest())
      if (lines) this.#add(lines instanceof Promise ? await lines : lines)
      const aside = await this.#attempt()
      if (aside === undefined) return
      if (this.#next === 'redirect') this.#redirect(aside)
      else if (this.#next === 'renew') await this.#renew(aside)
      else if (this.#next === 'repeat') this.#hasRepeated = true
      else if (this.#next === 'refuse') this.#refuse()
      else if (this.#next === 'refuse redirect')
        throw redirectRefused(this.#options.target, aside.status, aside.headers.location)
      else if (this.#next === 'refuse stream')
        throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: 'POST, DELETE' } })
      else {
        await this.#recover()
        if (this.#isOver()) return
      }
    }
  }

  #prepare(): void {
    const exchange = this.#exchange
    this.#sentId = exchange.session?.upstreamId ?? (exchange.isInitialize ? undefined : sessionIdOf(exchange))
    this.#headers = requestHeaders(this.#options.headers, exchange, this.#sentId)
    this.watchEvents = exchange.session?.eventIds?.scanner()
  }

  /**
   * Adds header lines; injected headers take precedence. A proof is omitted together with the token that it belongs to.
   */
  #add(lines: readonly string[]): void {
    const { injected } = this.#options.headers
    for (let i = 0; i < lines.length; i += 2) {
      const name = lines[i] ?? ''
      const overriding = name === 'DPoP' ? 'authorization' : name.toLowerCase()
      if (!injected.has(overriding)) this.#headers.push(name, lines[i + 1] ?? '')
    }
  }

  /** Describes the attempt for a credential strategy. */
  #asRequest(): OutgoingRequest {
    const headers: Record<string, string> = {}
    for (let i = 0; i < this.#headers.length; i += 2) {
      headers[(this.#headers[i] ?? '').toLowerCase()] = this.#headers[i + 1] ?? ''
    }
    const { req, body } = this.#exchange
    return { method: req.method ?? 'GET', url: new URL(this.#url), headers, body }
  }

  #attempt(): Promise<DiscardedResponse> {
    const { dispatcher, target, headersTimeoutMs, log } = this.#options
    const exchange = this.#exchange
    const { req } = exchange
    if (log.debugEnabled) log.debug('forwarding', { method: req.method, url: this.#url })
    return new Promise<DiscardedResponse>((resolve, reject) => {
      dispatcher.dispatch(
        {
          origin: target.origin,
          path: this.#path,
          method: req.method ?? 'GET',
          headers: this.#headers,
          body: exchange.body.length > 0 ? exchange.body : null,
          headersTimeout: exchange.asksForStream ? 0 : headersTimeoutMs,
          upgrade: exchange.upgrade ? 'websocket' : null,
        },
        new ResponseRelay(exchange, this, resolve, (failure) => {
          if (failure.code === 'BACKEND_UNREACHABLE') this.#options.watch.unreachable()
          reject(failure)
        }),
      )
    })
  }

  decide(status: number, headers: IncomingHttpHeaders, body?: Buffer): RelayDecision {
    const { credential, watch } = this.#options
    watch.responded()
    const isNonceRejected = this.#exchange.proof?.note(this.#url, status, headers)
    if (isNonceRejected && !this.#hasRepeated) return this.#aside('repeat')
    if (status >= 200 && status < 300) {
      this.#noteSession(headers)
      return 'show'
    }
    if (status < 400) return this.#redirected(status, headers.location)
    const challenge = headers['www-authenticate']
    const lost = this.#sessionLost(status, headers, body)
    if (lost === 'read') return 'read'
    if (lost) return this.#lostSession(status)
    if (status !== 401 && status !== 403) return 'show'
    // The credential is valid but has insufficient permissions, so the client may see the response without the
    // challenge.
    if (status === 403 && this.#renewals >= maxRenewals) return 'show'
    return credential?.concerns(status, challenge) ? this.#aside('renew') : 'show'
  }

  #redirected(status: number, location: string | undefined): RelayDecision {
    const { target } = this.#options
    if (this.#hops < maxRedirects && redirectPath(target, this.#path, status, location) !== undefined)
      return this.#aside('redirect')
    if (location === undefined || !isMcpRequest(target, this.#exchange)) return 'show'
    return leavesProxy(location) ? this.#aside('refuse redirect') : 'show'
  }

  #aside(next: Next): RelayDecision {
    this.#next = next
    return 'aside'
  }

  /** Reports whether the target has lost the session; returns 'read' until the body has arrived. */
  #sessionLost(status: number, headers: IncomingHttpHeaders, body: Buffer | undefined): boolean | 'read' {
    if (this.#sentId === undefined) return false
    const { message } = this.#exchange
    const head = { headers, requestId: message?.kind === 'request' ? message.id : undefined }
    const verdict = sessionVerdict(status, head)
    if (verdict !== 'read') return verdict === 'lost'
    if (body === undefined) return 'read'
    const refusal = sessionRefusal(status, head, decodeRefusal(body, headers['content-encoding']))
    // The effects of a tool are unknown here, so a request that the target has answered is not sent again.
    return mayResend(refusal, { isRepeatable: false })
  }

  /**
   * Decides what to do when the target no longer recognizes the session. Also handles a DELETE for a session that the
   * target has lost.
   */
  #lostSession(status: number): RelayDecision {
    const { session, req } = this.#exchange
    if (session && req.method === 'DELETE') this.#forget(session.clientId)
    else if (session?.initBody && !this.#recovered) return this.#aside('recover')
    // The session has just been reopened and is valid, so the target does not offer a GET stream.
    else if (this.#recovered && req.method === 'GET') return this.#aside('refuse stream')
    else if (this.#recovered || status !== 404) return this.#aside('refuse')
    return 'show'
  }

  /** Returns 404 regardless of the target's status, because a client opens a new session only on 404. */
  #refuse(): never {
    const { session } = this.#exchange
    if (session) this.#forget(session.clientId)
    if (this.#recovered) this.#options.watch.sessionFailed()
    throw new GatehouseError('SESSION_NOT_FOUND')
  }

  /** After a recovery, true when the message does not apply to the new session and was only acknowledged. */
  #isOver(): boolean {
    const { message, res } = this.#exchange
    if (!message || mayEnterNextSession(message)) return false
    res.writeHead(202, { 'Content-Length': '0' }).end()
    return true
  }

  #noteSession(headers: IncomingHttpHeaders): void {
    const exchange = this.#exchange
    const { sessions, watch } = this.#options
    const { session } = exchange
    if (session) {
      watch.sessionWorks()
      if (exchange.req.method === 'DELETE') this.#forget(session.clientId)
      else if (maySetState(exchange.body) && exchange.message)
        sessions.note(ownerOf(exchange), session, exchange.message)
      return
    }
    const id = firstValue(headers[headerName.sessionId])
    if (id === undefined || id === '') return
    sessions.open(ownerOf(exchange), id, exchange.isInitialize ? exchange.body : undefined)
  }

  #forget(clientId: string): void {
    this.#options.sessions.forget(ownerOf(this.#exchange), clientId)
  }

  #redirect(aside: NonNullable<DiscardedResponse>): void {
    this.#hops++
    const { status, headers } = aside
    this.#path = redirectPath(this.#options.target, this.#path, status, headers.location) ?? this.#path
  }

  async #recover(): Promise<void> {
    this.#recovered = true
    const { session } = this.#exchange
    const { dispatcher, target, headersTimeoutMs, log, sessions, watch } = this.#options
    if (session && this.#sentId !== undefined && (await this.#movedElsewhere(session, this.#sentId))) return
    if (!session || this.#sentId === undefined) return this.#refuse()
    const recovery = await recoverSession(session, {
      dispatcher,
      origin: target.origin,
      path: this.#path,
      headers: this.#headers,
      proof: this.#exchange.proof,
      lostId: this.#sentId,
      timeoutMs: headersTimeoutMs || 60_000,
    })
    log.info('the target has lost a session', { recovery })
    if (recovery === 'recovered') return sessions.moved(ownerOf(this.#exchange), session)
    if (recovery === 'refused') return this.#refuse()
    watch.unreachable()
    throw new GatehouseError('BACKEND_UNREACHABLE')
  }

  /** True when another process has already reopened the session. */
  async #movedElsewhere(session: ProxiedSession, lostId: string): Promise<boolean> {
    const newer = await this.#options.sessions.lookUp(ownerOf(this.#exchange), session.clientId)
    if (!newer || newer.upstreamId === lostId) return false
    this.#exchange.session = newer
    return true
  }

  async #renew({ status, headers }: NonNullable<DiscardedResponse>): Promise<void> {
    const { credential, target } = this.#options
    if (this.#renewals >= maxRenewals || !credential) throw new GatehouseError('BACKEND_AUTH_FAILED')
    this.#renewals++
    this.#hasRepeated = false
    await credential.renew(
      this.#exchange,
      status,
      headers['www-authenticate'],
      target.origin + this.#exchange.path,
    )
  }
}

/** Returns the key under which sessions of this caller are stored. */
export function ownerOf(exchange: ProxyExchange): string {
  return exchange.caller?.key ?? ''
}

/** Returns the client's session id; '' is treated as absent. */
export function sessionIdOf(exchange: ProxyExchange): string | undefined {
  const id = exchange.req.headers[headerName.sessionId]
  return typeof id === 'string' && id !== '' ? id : undefined
}
