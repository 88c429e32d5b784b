/**
 * Applies the address rule (schemas/addresses.ts) to hosts: to literals, to lookup results before a socket is opened,
 * and to names before an HTTP proxy connects to them.
 */
import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { type DialPolicy, isRefusedAddress, ModuleError } from '../../../schemas/index.ts'

/** Thrown when the rule forbids a host. `code` is stable. The message contains the host, not its resolved address. */
export class AddressRefusedError extends ModuleError {
  readonly code = 'ADDRESS_REFUSED'
  constructor(host: string, reason = 'its address is not allowed') {
    super(`refused to connect to ${host}: ${reason}`)
  }
}

export type LookupAll = (
  hostname: string,
  options: LookupOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

export const resolveAll: LookupAll = (hostname, options, callback) => {
  systemLookup(hostname, { ...options, all: true }, callback)
}

/** True for an IP address that the policy rejects, in any notation that `isIP` accepts. False for names. */
export function isRefusedLiteral(host: string, policy: DialPolicy): boolean {
  return isIP(host) !== 0 && isRefusedAddress(host, policy)
}

/**
 * Resolves a name and applies the policy to every address, because an HTTP proxy may connect to any address. Resolves
 * to false if the local resolver cannot resolve the name. Rejects with AddressRefusedError.
 */
export function resolvesToAllowed(
  host: string,
  policy: DialPolicy,
  { resolve, timeoutMs }: { readonly resolve: LookupAll; readonly timeoutMs: number },
): Promise<boolean> {
  return new Promise((done, reject) => {
    const timer = setTimeout(() => done(false), timeoutMs)
    resolve(host, { all: true }, (error, addresses) => {
      clearTimeout(timer)
      if (error || addresses.length === 0) done(false)
      else if (addresses.some(({ address }) => isRefusedAddress(address, policy)))
        reject(new AddressRefusedError(host))
      else done(true)
    })
  })
}

/**
 * Returns a lookup function for sockets that other code opens (telemetry exporters). The function returns only allowed
 * addresses.
 */
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
  // Handles errors first, because the system's lookup then passes undefined instead of an address.
  addresses: LookupAddress[] | undefined,
  options: LookupOptions,
  callback: ConnectCallback,
): void {
  const first = addresses?.[0]
  if (error || !addresses || !first) callback(error ?? new Error('the name has no address'), [])
  else if (options.all) callback(null, addresses)
  else callback(null, first.address, first.family)
}
