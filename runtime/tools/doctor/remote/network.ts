/** Checks a host's name, addresses, connection and certificate, without HTTP. */
import { isIP, connect as connectTcp } from 'node:net'
import {
  checkServerIdentity,
  connect as connectTls,
  type ConnectionOptions,
  type DetailedPeerCertificate,
  getCACertificates,
} from 'node:tls'
import type { LookupAddress } from 'node:dns'
import { isRefusedAddress } from '../../../../schemas/index.ts'
import { failureOf, isLoopbackHost, type NetworkFailure, unbracket } from '../../../net/index.ts'
import type { Peers } from '../../../toolkit/mcp-client/peers.ts'
import type { FindingCode } from '../report/codes.ts'
import { failed, ok, type CheckOutcome, warning } from '../report/finding.ts'
import { quoted } from './facts.ts'

const maxDialed = 4
const soonMs = 14 * 86_400_000

export async function checkName(
  url: URL,
  peers: Peers,
): Promise<{ readonly outcome: CheckOutcome; readonly addresses: readonly LookupAddress[] }> {
  const host = unbracket(url.hostname)
  const found = await peers.addresses(url)
  if (found === undefined) return { outcome: ok('resolved by the HTTP proxy'), addresses: [] }
  if ('failure' in found) return { outcome: nameFailure(host, found), addresses: [] }
  const allowed = found.filter(({ address }) => peers.mayDial(url, address))
  const shown = found.map(({ address }) => address).join(', ')
  if (allowed.length === 0)
    return { outcome: failed('address.refused', `${host} resolves to ${shown}`), addresses: [] }
  return {
    outcome: ok(isIP(host) === 0 ? `${host} resolves to ${shown}` : `${host} is an IP address`),
    addresses: allowed,
  }
}

function nameFailure(host: string, { failure, detail }: NetworkFailure): CheckOutcome {
  const proof = `getent hosts ${quoted(host)}`
  if (failure === 'timeout' || detail === 'EAI_AGAIN')
    return failed('dns.resolver', `${host}: no response from the resolver (${detail})`, { proof })
  const code = host.includes('_') ? 'dns.underscore' : 'dns.not-found'
  return failed(code, `${host}: no address (${detail})`, { proof })
}

/** Checks which networks can reach the addresses. */
export function checkAddress(url: URL, addresses: readonly LookupAddress[]): CheckOutcome {
  if (addresses.length === 0) return ok('unknown')
  if (isLoopbackHost(url.hostname)) return ok('loopback: clients on this machine only')
  const inside = addresses.filter(({ address }) => isRefusedAddress(address, 'public'))
  if (inside.length === 0) return ok('public')
  return warning('address.private', `${inside.map(({ address }) => address).join(', ')} is not public`)
}

export async function checkConnection(
  url: URL,
  addresses: readonly LookupAddress[],
  timeoutMs: number,
): Promise<CheckOutcome> {
  if (addresses.length === 0) return ok('through the HTTP proxy')
  const port = portOf(url)
  const tries = await Promise.all(
    addresses
      .slice(0, maxDialed)
      .map(async ({ address }) => ({ address, failure: await dial(address, port, timeoutMs) })),
  )
  const broken = tries.filter(({ failure }) => failure !== undefined)
  const shown = broken.map(({ address, failure }) => `${address}: ${failure?.detail ?? ''}`).join(', ')
  if (broken.length === 0) return ok(`port ${port} accepts connections`)
  if (broken.length < tries.length) {
    // A machine without IPv6 is not a problem with the server.
    const isLocalProblem = broken.every(({ failure }) => failure?.failure === 'unreachable')
    return isLocalProblem ? ok(`port ${port} accepts connections`) : warning('connect.some', shown)
  }
  const [first] = broken
  const proof = `nc -vz ${quoted(unbracket(url.hostname))} ${port}`
  return failed(connectCodes[first?.failure?.failure ?? ''] ?? 'connect.unreachable', shown, { proof })
}

const connectCodes: Readonly<Record<string, FindingCode>> = {
  refused: 'connect.refused',
  timeout: 'connect.timeout',
  closed: 'connect.refused',
}

export function portOf(url: URL): number {
  return Number(url.port || (url.protocol === 'https:' ? 443 : 80))
}

function dial(host: string, port: number, timeoutMs: number): Promise<NetworkFailure | undefined> {
  return new Promise((done) => {
    const socket = connectTcp({ host, port })
    const timer = setTimeout(() => end({ failure: 'timeout', detail: 'no response in time' }), timeoutMs)
    function end(failure: NetworkFailure | undefined): void {
      clearTimeout(timer)
      socket.destroy()
      done(failure)
    }
    socket.once('connect', () => end(undefined))
    socket.once('error', (error) => end(failureOf(error)))
  })
}

interface Handshake {
  readonly certificate: DetailedPeerCertificate
  /** OpenSSL's error for the certificate chain. Undefined when the chain can be verified. */
  readonly error: string | undefined
  readonly protocol: string | null
}

export async function checkTls(
  url: URL,
  addresses: readonly LookupAddress[],
  { timeoutMs, ca }: Pick<Peers, 'timeoutMs' | 'ca'>,
): Promise<CheckOutcome> {
  const host = unbracket(url.hostname)
  if (url.protocol === 'http:') {
    return isLoopbackHost(host) ? ok('plain http on loopback') : warning('tls.none', 'plain http')
  }
  const [first] = addresses
  if (first === undefined) return ok('through the HTTP proxy')
  const proof = `openssl s_client -connect ${quoted(`${host}:${portOf(url)}`)} -servername ${quoted(host)} </dev/null`
  const made = await shakeHands(host, first.address, portOf(url), ca, timeoutMs)
  if ('failure' in made) {
    const plain = /WRONG_VERSION|PACKET_LENGTH|HTTP_REQUEST|RECORD/.test(made.detail)
    return failed(plain ? 'tls.not-tls' : 'tls.handshake', made.detail, { proof })
  }
  return verdict(host, made, proof)
}

function verdict(host: string, { certificate, error, protocol }: Handshake, proof: string): CheckOutcome {
  const until = Date.parse(certificate.valid_to)
  const from = Date.parse(certificate.valid_from)
  const now = Date.now()
  if (until < now) return failed('tls.expired', `expired on ${day(until)}`, { proof })
  if (from > now) return failed('tls.not-yet-valid', `valid from ${day(from)}`, { proof })
  const wrongName = checkServerIdentity(host, certificate)
  if (wrongName) {
    return failed('tls.name', `the certificate is for ${certificate.subjectaltname ?? 'no host name'}`, {
      proof,
    })
  }
  if (error !== undefined) return failed(chainCodes[error] ?? 'tls.invalid', error, { proof })
  const shown = `${protocol ?? 'TLS'}, certificate until ${day(until)}`
  return until - now < soonMs ? warning('tls.expires-soon', shown, { proof }) : ok(shown)
}

const chainCodes: Readonly<Record<string, FindingCode>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls.self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls.self-signed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls.chain',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls.chain',
  UNABLE_TO_GET_ISSUER_CERT: 'tls.chain',
  CERT_HAS_EXPIRED: 'tls.expired',
  CERT_NOT_YET_VALID: 'tls.not-yet-valid',
}

function day(ms: number): string {
  return Number.isNaN(ms) ? 'an unknown date' : new Date(ms).toISOString().slice(0, 10)
}

/** Performs a TLS handshake that accepts any certificate. Sends no data. */
function shakeHands(
  host: string,
  address: string,
  port: number,
  ca: string | undefined,
  timeoutMs: number,
): Promise<Handshake | NetworkFailure> {
  const options: ConnectionOptions = {
    host: address,
    port,
    ...(isIP(host) === 0 && { servername: host }),
    // This check examines the certificate. No data is sent over the connection.
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    ...(ca !== undefined && { ca: [...getCACertificates('default'), ca] }),
  }
  return new Promise((done) => {
    const socket = connectTls(options)
    const timer = setTimeout(() => end({ failure: 'timeout', detail: 'no TLS handshake in time' }), timeoutMs)
    function end(made: Handshake | NetworkFailure): void {
      clearTimeout(timer)
      socket.destroy()
      done(made)
    }
    socket.once('secureConnect', () => {
      const code: unknown = socket.authorizationError
      const error = typeof code === 'string' ? code : code instanceof Error ? String(codeOf(code)) : undefined
      end({
        certificate: socket.getPeerCertificate(true),
        // The name is checked separately from the chain.
        error: error === 'ERR_TLS_CERT_ALTNAME_INVALID' ? undefined : error,
        protocol: socket.getProtocol(),
      })
    })
    socket.once('error', (error) => end(failureOf(error)))
    socket.once('end', () => end({ failure: 'closed', detail: 'closed during the TLS handshake' }))
  })
}

function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : error.message
}
