/** Which addresses a remote server's resource may name: the rule of schemas/addresses.ts, by the resource's settings. */
import { type AddressPolicy, addressViolation, endpointPolicy } from '../../schemas/index.ts'

/** `allowLoopback`: this machine stands for the cluster, and servers on it may be named. */
export function policyFor(url: string, allowPrivateEndpoint: boolean, allowLoopback = false): AddressPolicy {
  return allowLoopback && isLoopback(url) ? 'any' : endpointPolicy(allowPrivateEndpoint)
}

/** Why the address is refused, as the end of a sentence; undefined when it is fine. */
export function addressFailure(
  url: string,
  allowPrivateEndpoint: boolean,
  allowLoopback = false,
): string | undefined {
  return addressViolation(url, policyFor(url, allowPrivateEndpoint, allowLoopback))
}

/** Refused by `private`, and by nothing that `any` allows. */
function isLoopback(url: string): boolean {
  return addressViolation(url, 'any') === undefined && addressViolation(url, 'private') !== undefined
}
