/** Serves an authorization server and a protected resource over TLS, with a listener that asks for client certificates. */
import { Agent, request } from 'node:https'
import type { Test } from 'tap'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { Exchange, listen, pipeline, sendProblem, silentLog } from '../../../runtime/net/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import { ServedCertificate } from '../../../schemas/certificate/index.ts'
import type { Dpop } from '../../../schemas/index.ts'
import { type Authority, type Leaf, makeAuthority, type MountedSecret, mountSecret } from '../certificates.ts'
import type { Rig } from '../authserver/authserver.ts'

export interface TlsAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readonly<Record<string, unknown>>
}

interface TlsRequest {
  readonly client?: Leaf | undefined
  readonly form?: Readonly<Record<string, string>>
  readonly json?: object
  readonly headers?: Readonly<Record<string, string>>
  /** Default: a new connection. */
  readonly agent?: Agent
}

export interface MutualTls {
  readonly url: string
  /** The authority of the clients' certificates. */
  readonly clients: Authority
  readonly files: MountedSecret
  readonly certificate: ServedCertificate
  /** Reasons why the resource rejected tokens. */
  readonly reasons: readonly string[]
  send(path: string, options?: TlsRequest): Promise<TlsAnswer>
}

/** Sends a request, with the client's certificate if there is one. `ca` is the authority of the server. */
export function sendOverTls(
  url: string,
  { ca, client, form, json, headers = {}, agent }: TlsRequest & { readonly ca: string },
): Promise<TlsAnswer> {
  const body = form ? new URLSearchParams(form).toString() : json && JSON.stringify(json)
  const type = form ? 'application/x-www-form-urlencoded' : 'application/json'
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      {
        method: body === undefined ? 'GET' : 'POST',
        ca,
        ...(client && { cert: client.cert, key: client.key }),
        agent: agent ?? new Agent({ maxCachedSessions: 0 }),
        headers: { ...(body !== undefined && { 'content-type': type }), ...headers },
      },
      (res) => {
        let text = ''
        res.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        res.on('end', () => {
          const isJson = res.headers['content-type']?.startsWith('application/json') !== false
          const parsed = (isJson && text !== '' ? JSON.parse(text) : {}) as Record<string, unknown>
          resolve({ status: res.statusCode ?? 0, headers: res.headers, body: parsed })
        })
      },
    )
    outgoing.on('error', reject).end(body)
  })
}

/** The paths of the authorization server, and `/mcp`, which requires a token. */
export async function serveMutualTls(
  t: Test,
  rig: Pick<Rig, 'server' | 'issuer' | 'resource'>,
  { dpop, asks = true }: { readonly dpop?: Dpop; readonly asks?: boolean } = {},
): Promise<MutualTls> {
  const [servers, clients] = await Promise.all([makeAuthority(), makeAuthority()])
  const own = await servers.leaf()
  const files = mountSecret({ 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': clients.ca })
  const { certFile, keyFile, caFile } = files
  const certificate = new ServedCertificate({ certFile, keyFile, clientCaFile: caFile })
  t.teardown(() => certificate.close())
  const reasons: string[] = []
  const authenticator = makeAuthenticator(
    {
      type: 'oidc',
      oidc: { issuer: rig.issuer, audience: rig.resource, resource: rig.resource, dpop },
    },
    {
      keys: rig.server.keys,
      isLive: (caller) => rig.server.isLive(caller),
      observe: (event) => reasons.push('reason' in event ? event.reason : event.kind),
      dpop: { store: makeMemoryStore() },
      clientCertificates: asks,
    },
  )
  t.teardown(() => authenticator.close())
  const handler = pipeline<Exchange>(
    {
      route: (exchange) => authenticator.route(exchange) ?? rig.server.routes(exchange.path),
      authenticate: authenticator.stage,
      dispatch: ({ res, caller }) => void res.end(JSON.stringify({ subject: caller?.subject })),
      recover: (exchange, error) => {
        if (!authenticator.sendChallenge(exchange, error)) sendProblem(exchange.res, error)
      },
    },
    Exchange,
  )
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    handler,
    log: silentLog,
    certificate,
    ...(asks ? { clientCertificates: 'request' } : {}),
  })
  t.teardown(() => listener.close())
  const send: MutualTls['send'] = (path, options) =>
    sendOverTls(`${listener.url}${path}`, { ...options, ca: servers.ca })
  return { url: listener.url, clients, files, certificate, reasons, send }
}
