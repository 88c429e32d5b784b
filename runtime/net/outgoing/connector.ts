/**
 * Opens the sockets of outgoing HTTP connections: TCP first, then TLS over it, each with its own time limit.
 *
 * An address that the policy refuses (schemas/addresses.ts) is never dialled, whether it was written as a
 * literal (in any notation) or came out of a lookup, for http and https alike. Of a name's addresses only the allowed
 * ones are tried, so the address that was checked is the address that is dialled (no rebinding in between).
 */
import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns'
import { connect as connectTcp, isIP, type LookupFunction } from 'node:net'
import { getCACertificates } from 'node:tls'
import { buildConnector } from './undici.ts'
import { type DialPolicy, isRefusedAddress, ModuleError } from '../../../schemas/index.ts'
import { unbracket } from '../addresses.ts'
import { dialTimeoutMs, tlsTimeoutMs } from '../limits.ts'

/** The guard refused to dial. `code` is stable; the message names the host, not the address it resolved to. */
class AddressRefusedError extends ModuleError {
  readonly code = 'ADDRESS_REFUSED'
  constructor(host: string) {
    super(`refused to connect to ${host}: its address is not allowed`)
  }
}

export type LookupAll = (
  hostname: string,
  options: LookupOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Trust and identity of a TLS client, in PEM. The same object as long as nothing has changed. */
export interface TlsMaterial {
  /** Certificates trusted beside the system's. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** True: whoever answers is trusted. */
  readonly insecureSkipVerify?: boolean | undefined
}

export interface ConnectorOptions {
  /** Which addresses are refused; true means `public`, false what nobody may reach (`operator`). */
  readonly guard: boolean | DialPolicy
  /** PEM certificates trusted beside the system's. */
  readonly ca?: string | undefined
  /** What TLS connections are made with, in place of `ca`; looked at for each new one. */
  readonly tls?: (() => TlsMaterial) | undefined
  /** Replaces the system's resolver (tests). */
  readonly lookup?: LookupAll | undefined
  readonly dialTimeoutMs?: number | undefined
  readonly tlsTimeoutMs?: number | undefined
}

const resolveAll: LookupAll = (hostname, options, callback) => {
  systemLookup(hostname, { ...options, all: true }, callback)
}

/** Makes an undici connector. The callback's error is AddressRefusedError, a system error, or a TLS error. */
export function makeConnector(options: ConnectorOptions): buildConnector.connector {
  const { guard } = options
  const policy: DialPolicy = typeof guard === 'string' ? guard : guard ? 'public' : 'operator'
  const resolve = options.lookup ?? resolveAll
  const dialMs = options.dialTimeoutMs ?? dialTimeoutMs
  const tls = tlsOf(options)

  return function connect(target, callback) {
    const secure = target.protocol === 'https:'
    const host = unbracket(target.hostname)
    if (isIP(host) !== 0 && isRefusedAddress(host, policy)) {
      callback(new AddressRefusedError(host), null)
      return
    }
    const socket = connectTcp({
      host,
      port: Number(target.port || (secure ? 443 : 80)),
      lookup: guardedLookup(policy, resolve),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
    })
    const timer = setTimeout(() => socket.destroy(dialTimeout(host)), dialMs)

    function onError(error: Error): void {
      clearTimeout(timer)
      callback(error, null)
    }
    socket.once('error', onError)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', onError)
      // Belt and braces: whatever resolved or proxied the name, the peer itself is checked once more.
      if (isRefusedAddress(socket.remoteAddress ?? '', policy)) {
        socket.destroy()
        callback(new AddressRefusedError(host), null)
      } else if (secure) tls()({ ...target, httpSocket: socket }, callback)
      else callback(null, socket)
    })
  }
}

/** The second half of connecting; made again when what it is made of has changed. */
function tlsOf(options: Pick<ConnectorOptions, 'ca' | 'tls' | 'tlsTimeoutMs'>) {
  const fixed: TlsMaterial = { ca: options.ca }
  let made: { readonly from: TlsMaterial; readonly connect: buildConnector.connector } | undefined
  return function connector(): buildConnector.connector {
    const from = options.tls?.() ?? fixed
    if (made?.from !== from) {
      const { ca, cert, key, insecureSkipVerify } = from
      const connect = buildConnector({
        timeout: options.tlsTimeoutMs ?? tlsTimeoutMs,
        allowH2: false,
        minVersion: 'TLSv1.2',
        ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
        ...(cert === undefined || key === undefined ? {} : { cert, key }),
        ...(insecureSkipVerify ? { rejectUnauthorized: false } : {}),
      })
      made = { from, connect }
    }
    return made.connect
  }
}

function dialTimeout(host: string): Error {
  return Object.assign(new Error(`connecting to ${host} took too long`), { code: 'ETIMEDOUT' })
}

/** A look-up for sockets that others open (exporters of telemetry); gives only addresses that the policy allows. */
export function guardedLookup(policy: DialPolicy, resolve: LookupAll = resolveAll): LookupFunction {
  return function lookup(hostname, options, callback) {
    resolve(hostname, options, (error, addresses) => {
      if (error) return response(error, [], options, callback)
      const allowed = addresses.filter(({ address }) => !isRefusedAddress(address, policy))
      response(allowed.length === 0 ? new AddressRefusedError(hostname) : null, allowed, options, callback)
    })
  }
}

type ConnectCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void

function response(
  error: NodeJS.ErrnoException | null,
  // The system's own look-up passes none at all with an error.
  addresses: LookupAddress[] | undefined,
  options: LookupOptions,
  callback: ConnectCallback,
): void {
  const first = addresses?.[0]
  if (error || !addresses || !first) callback(error ?? new Error('the name has no address'), [])
  else if (options.all) callback(null, addresses)
  else callback(null, first.address, first.family)
}
