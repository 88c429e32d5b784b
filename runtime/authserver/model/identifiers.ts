/** Random identifiers, and the hashes and compound keys that are used as store keys. */
import { hash } from 'node:crypto'
import { issuerPrefix } from '../../../schemas/index.ts'
import { assertionClient, clientSubject, randomBuffer, workloadSubject } from '../../net/index.ts'

/** Returns 256 random bits (or `bytes` random bytes) in base64url. */
export function randomId(bytes = 32): string {
  return randomBuffer(bytes).toString('base64url')
}

/** SHA-256 in base64url. The store contains secrets only in this form. */
export function sha256(value: string): string {
  return hash('sha256', value, 'base64url')
}

/** Joins parts into a single key. The result is unambiguous regardless of what the parts contain. */
export function compoundKey(...parts: readonly string[]): string {
  return parts.map((part) => `${part.length}:${part}`).join('')
}

/** Returns the key for one provider's tokens in one session. */
export function upstreamRowKey(sessionId: string, provider: string): string {
  return compoundKey(sessionId, provider)
}

/** Returns the subject of a declared client's tokens. User ids never have this form (upstream/user.ts). */
export function machineSubject(clientId: string): string {
  return `${clientSubject}${clientId}`
}

export function isMachineSubject(subject: string): boolean {
  return subject.startsWith(clientSubject)
}

/** True for the subject of a workload's tokens, its SPIFFE ID. User ids never have this form (upstream/user.ts). */
export function isWorkloadSubject(subject: string): boolean {
  return subject.startsWith(workloadSubject)
}

/** Returns the client id of a binding's tokens. No client can register or declare an id of this form. */
export function assertionClientId(
  issuerUrl: string,
  kind: 'subject' | 'matcher' | 'id_jag',
  selector: string,
): string {
  return `${assertionClient}${sha256(compoundKey(issuerUrl, kind, selector))}`
}

/** Returns the id of a policy for exchanged tokens. Policies with different rules have different ids. */
export function exchangePolicyId(issuerUrl: string, rules: readonly string[]): string {
  return `token-exchange:${sha256(compoundKey(issuerUrl, ...rules))}`
}

/**
 * Returns the token subject for a user or a machine of a trusted issuer. The URL of an issuer contains neither "#" nor
 * "?", so subjects of different issuers or tenants never collide.
 */
export function issuerSubject(issuerUrl: string, subject: string, tenant?: string): string {
  const owner = tenant === undefined ? issuerUrl : `${issuerUrl}?tenant=${encodeURIComponent(tenant)}`
  return `${issuerPrefix(owner)}${subject}`
}

/** True for a token that a machine got for itself: as a declared client, as a workload, or with an assertion. */
export function isMachineToken({
  sub,
  client_id: clientId,
}: {
  readonly sub: string
  readonly client_id: string
}): boolean {
  return isMachineSubject(sub) || isWorkloadSubject(sub) || isAssertionClient(clientId)
}

export function isAssertionClient(clientId: string): boolean {
  return clientId.startsWith(assertionClient)
}
