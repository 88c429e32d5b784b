/** Applies the address rules from schemas/addresses.ts with the settings in a remote server's resource. */
import { type AddressPolicy, addressViolation, endpointPolicy } from '../../schemas/index.ts'

export interface AllowedAddresses {
  readonly allowPrivateEndpoint: boolean
  /** Allows servers on the local machine, which replaces the cluster in `gatehouse dev`. */
  readonly allowLoopback?: boolean | undefined
}

export function policyFor(url: string, allowed: AllowedAddresses): AddressPolicy {
  const { allowPrivateEndpoint, allowLoopback = false } = allowed
  return allowLoopback && isLoopback(url) ? 'any' : endpointPolicy(allowPrivateEndpoint)
}

/** Returns the reason why the address is rejected, as the end of a sentence; undefined when it is allowed. */
export function addressFailure(url: string, allowed: AllowedAddresses): string | undefined {
  return addressViolation(url, policyFor(url, allowed))
}

/** True when `private` rejects the URL and `any` allows it. */
function isLoopback(url: string): boolean {
  return addressViolation(url, 'any') === undefined && addressViolation(url, 'private') !== undefined
}
