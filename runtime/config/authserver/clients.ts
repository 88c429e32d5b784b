/**
 * Declared clients of the authorization server: their settings, and the rules that the schema cannot express.
 *
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer; RFC 6749 section 4.4; RFC 7523 section 2.2.
 */
import { readFileSync } from 'node:fs'
import {
  type AuthServerFile,
  clientKeyViolations,
  type DeclaredClientFile,
  defaultAssertionAge,
  federatedViolations,
  GatehouseError,
  parseDuration,
  type TrustedIssuerFile,
} from '../../../schemas/index.ts'
import { invalidConfig, parseConfig, readConfigText } from '../common/config-file.ts'
import { systemReason } from '../common/system-reason.ts'
import type { AuthServerConfig, DeclaredClientSettings, SecretSource } from './settings.ts'
import { spiffeClientsOf, spiffeFileViolations } from './spiffe.ts'
import {
  type AssertionPolicySettings,
  assertionPoliciesOf,
  exchangePoliciesOf,
  type ExchangePolicySettings,
  trustedIssuerViolations,
} from './trusted-issuers.ts'

const minSecretLength = 32

type Clients = readonly DeclaredClientSettings[]

/**
 * Returns a function that returns the file's current declared clients. The returned function throws INVALID_CONFIG when
 * the file violates its schema, or when the clients violate a rule. That function does not read the clients' secrets,
 * and does not check other settings, which take effect at the next start.
 */
export function followDeclaredClients(path: string): () => Clients {
  return followFile(path, (file) => {
    const clients = declaredClientsOf(file)
    const { allowedAudiences } = file
    const identities = federatedViolations(file).map(({ path, message }) => `${path} ${message}`)
    const violations = [
      ...declaredClientViolations({ clients, allowedAudiences }),
      ...identities,
      ...spiffeFileViolations(file),
    ]
    return { value: clients, violations }
  })
}

/** Returns a function that returns the current issuers of accepted assertions, like followDeclaredClients. */
export function followAssertionPolicies(path: string): () => readonly AssertionPolicySettings[] {
  return followFile(path, (file) => ({
    value: assertionPoliciesOf(file),
    violations: trustedIssuerViolations(file),
  }))
}

/** Like followDeclaredClients, but returns the issuers whose users' tokens can be exchanged. */
export function followExchangePolicies(path: string): () => readonly ExchangePolicySettings[] {
  return followFile(path, (file) => ({
    value: exchangePoliciesOf(file),
    violations: trustedIssuerViolations(file),
  }))
}

interface Read<T> {
  readonly value: T
  readonly violations: readonly string[]
}

/** Parses the file only when its text has changed. */
function followFile<T>(path: string, read: (file: AuthServerFile) => Read<T>): () => T {
  let parsed: { readonly text: string; readonly value: T } | undefined
  return () => {
    const text = readConfigText(path)
    if (parsed?.text === text) return parsed.value
    const { value, violations } = read(parseConfig('authserver', text, path))
    if (violations.length > 0) {
      throw invalidConfig(
        violations.map((message) => ({ path: '', message })),
        path,
      )
    }
    parsed = { text, value }
    return value
  }
}

export function declaredClientsOf(file: AuthServerFile): Clients {
  const { clients = [], allowedAudiences, trustedIssuers = [] } = file
  const declared = clients.map((client, index) => ({
    ...declaredClientOf(client, index, allowedAudiences),
    ...federatedOf(client, trustedIssuers),
  }))
  return [...declared, ...spiffeClientsOf(file)]
}

/** Returns no identity when the issuer is unknown, which `federatedViolations` reports. */
function federatedOf(
  { federated }: DeclaredClientFile,
  trustedIssuers: readonly TrustedIssuerFile[],
): Pick<DeclaredClientSettings, 'federated'> {
  const issuer = trustedIssuers.find(({ name }) => name === federated?.issuerRef)
  if (!federated || !issuer) return {}
  const { issuerRef: _, maxAssertionAge = defaultAssertionAge(issuer.preset), ...identity } = federated
  return { federated: { ...identity, issuer, maxAgeMs: parseDuration(maxAssertionAge) } }
}

function declaredClientOf(
  client: DeclaredClientFile,
  index: number,
  allowedAudiences: readonly string[],
): DeclaredClientSettings {
  const { clientId, jwks, jwksUri, signingAlg, scopes, subjectClients, clientSecretFiles: files } = client
  return {
    clientId,
    signingAlg,
    scopes,
    resources: client.resources ?? allowedAudiences,
    tokenMs: parseDuration(client.tokenLifespan),
    isBound: client.dpopBoundAccessTokens ?? false,
    isCertificateBound: client.tlsClientCertificateBoundAccessTokens ?? false,
    ...(jwks === undefined ? {} : { jwks }),
    ...(jwksUri === undefined ? {} : { jwksUri }),
    ...(subjectClients === undefined ? {} : { subjectClients }),
    ...(files === undefined
      ? {}
      : { secrets: files.map((file, at) => secretIn(`clients[${index}].clientSecretFiles[${at}]`, file)) }),
  }
}

export function tokenExchangeOf({ inboundGrants }: AuthServerFile): Pick<AuthServerConfig, 'tokenExchange'> {
  const grant = inboundGrants?.tokenExchange
  if (!grant) return {}
  const { delegationLifespan, maxDelegationDepth } = grant
  return { tokenExchange: { lifeMs: parseDuration(delegationLifespan), maxDelegationDepth } }
}

/** Returns a function that reads the secret. Trims the secret, because editors and kubectl add newlines. */
function secretIn(field: string, path: string): SecretSource {
  return () => {
    const secret = readSecret(field, path)
    if (secret.length >= minSecretLength) return secret
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${field} ${path} must contain at least ${minSecretLength} characters`,
    })
  }
}

function readSecret(field: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (cause) {
    const detail = `${field} ${path} cannot be read: ${systemReason(cause)}`
    throw new GatehouseError('INVALID_CONFIG', { detail, cause })
  }
}

/** Returns one sentence per error in the declared clients, except errors in their secrets. */
export function declaredClientViolations({
  clients = [],
  allowedAudiences,
}: Pick<AuthServerConfig, 'clients' | 'allowedAudiences'>): readonly string[] {
  const ids = clients.map(({ clientId }) => clientId)
  return clients.flatMap((client, index) => {
    const at = client.spiffe ? `inboundGrants.spiffeClientAuth[${client.clientId}]` : `clients[${index}]`
    const { clientId, jwks, jwksUri, signingAlg, resources } = client
    return [
      ...(ids.indexOf(clientId) === index ? [] : [`${at}.clientId "${clientId}" is used twice`]),
      ...resources
        .filter((resource) => !allowedAudiences.includes(resource))
        .map((resource) => `${at}.resources "${resource}" is not in allowedAudiences`),
      ...(jwks?.keys ?? [])
        .flatMap((key, position) => clientKeyViolations(key, signingAlg, `${at}.jwks.keys[${position}]`))
        .map(({ path, message }) => `${path} ${message}`),
      ...keyUrlViolations(`${at}.jwksUri`, jwksUri),
    ]
  })
}

function keyUrlViolations(field: string, url: string | undefined): readonly string[] {
  if (url === undefined) return []
  if (!URL.canParse(url)) return [`${field} must be an absolute URL`]
  const { username, password, hash } = new URL(url)
  if (username !== '' || password !== '') return [`${field} must not contain a user name or password`]
  return hash === '' ? [] : [`${field} must not have a fragment`]
}
