/** Which addresses a remote server's resource may name: the rule of schemas/addresses.ts, by the resource's settings. */
import { type AddressPolicy, addressViolation, endpointPolicy } from '../../schemas/index.ts'

export interface AllowedAddresses {
  readonly allowPrivateEndpoint: boolean
  /** This machine stands for the cluster, and servers on it may be named. */
  readonly allowLoopback?: boolean | undefined
}

export function policyFor(url: string, allowed: AllowedAddresses): AddressPolicy {
  const { allowPrivateEndpoint, allowLoopback = false } = allowed
  return allowLoopback && isLoopback(url) ? 'any' : endpointPolicy(allowPrivateEndpoint)
}

/** Why the address is refused, as the end of a sentence; undefined when it is fine. */
export function addressFailure(url: string, allowed: AllowedAddresses): string | undefined {
  return addressViolation(url, policyFor(url, allowed))
}

/** Refused by `private`, and by nothing that `any` allows. */
function isLoopback(url: string): boolean {
  return addressViolation(url, 'any') === undefined && addressViolation(url, 'private') !== undefined
}
