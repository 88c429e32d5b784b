/**
 * Rules for the embedded authorization server. Identities of other platforms are converted where both servers grant the
 * same rights. The report lists everything else. Dropping those fields does not remove any protection.
 */
import { isFields, type Fields } from '../../../../schemas/index.ts'
import type { MigrationDraft, Mutable } from './draft.ts'

const ownClient = 'for a program that acts for itself, add an entry to clients'
const delegate = 'for a client that exchanges users’ tokens, add an entry with subjectClients to clients'
const platform =
  'declare the issuers in trustedIssuers and their subjects in inboundGrants.jwtBearer, with the scopes of each subject'

/** Scopes that require a user. A client without a user cannot get these scopes. */
const userScopes: ReadonlySet<unknown> = new Set(['openid', 'profile', 'email', 'offline_access'])

/**
 * Converts the server's settings at the path `at`. `scopes` contains the scopes of the protected resource, if the
 * document contains them. In ToolHive, a subject may request all of these scopes; in Gatehouse, each subject has its
 * own scopes.
 */
export function convertAuthServer(draft: MigrationDraft, at: string, scopes: unknown): void {
  const [server] = draft.fieldsAt(at).map(({ value }) => mutable(value))
  const machineScopes = listOf(scopes).filter((scope) => !userScopes.has(scope))
  if (server) {
    convertIssuerPolicies(draft, at, machineScopes)
    convertWorkloads(draft, at, server)
    dropUnusedIssuers(draft, at, server)
  }
  const lost: Readonly<Record<string, string>> = {
    forceConfidentialRedirectUris: 'only clients that request a secret become confidential',
    insecureAllowConfidentialOverLoopbackHTTP: 'confidential clients need no permission for loopback issuers',
    delegateClients: `these clients are not converted; ${delegate}; ${ownClient}`,
    'inboundGrants.tokenExchange': `tokens of other issuers are not exchanged; ${delegate}`,
    allowPrivateKeyJWTRegistration: `clients cannot register public keys; ${ownClient}, with its public keys`,
    'upstreamProviders[].oauth2Config.allowPrivateIPs': 'private addresses are rejected',
    'upstreamProviders[].oauth2Config.insecureAllowHTTP': 'plain http is rejected',
  }
  for (const [field, text] of Object.entries(lost)) draft.drop(`${at}.${field}`, 'lost', text)
  const grants = server?.['inboundGrants']
  if (isFields(grants) && Object.keys(grants).length === 0) delete server?.['inboundGrants']
}

function mutable(value: unknown): Mutable | undefined {
  return isFields(value) ? value : undefined
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function fieldsIn(value: unknown): readonly Mutable[] {
  return listOf(value).filter(isFields)
}

/**
 * Adds scopes to the bindings, or drops the grant, because a binding without scopes does not get any tokens in
 * Gatehouse.
 */
function convertIssuerPolicies(draft: MigrationDraft, at: string, scopes: readonly unknown[]): void {
  const path = `${at}.inboundGrants.jwtBearer`
  const lists = draft.fieldsAt(`${path}.issuerPolicies[].subjectBindings`)
  if (scopes.length === 0 || lists.length === 0) {
    draft.drop(path, 'lost', `bindings without scopes get no tokens in Gatehouse; ${platform}`)
    return
  }
  for (const { value, path: list } of lists) {
    for (const binding of fieldsIn(value)) Object.assign(binding, { scopes: [...scopes] })
    draft.note(`${list}[].scopes`, 'differs', 'is required, so it was set to the scopes from oidcConfigRef')
  }
}

const onlyFiles = 'only bundles in a ConfigMap are supported'
const onlyJwt = 'only JWT-SVIDs are accepted'

/** Converts trust domains and their clients. Unsupported items are removed from both lists. */
function convertWorkloads(draft: MigrationDraft, at: string, server: Mutable): void {
  const domains = new Map(
    fieldsIn(server['spiffeTrustDomains']).map((domain) => [domain['name'], toTrustDomain(domain)]),
  )
  const path = `${at}.inboundGrants.spiffeClientAuth`
  const clients = kept(draft, server['inboundGrants'], path, (client) => toWorkload(client, domains))
  for (const { clientId } of clients) {
    draft.note(
      `${path}[${String(clientId)}]`,
      'differs',
      'gets tokens only for itself, and each JWT-SVID is accepted once: set replay to untilExpiry if its agent caches JWT-SVIDs',
    )
  }
  const used = new Set(clients.map(({ trustDomainRef }) => trustDomainRef))
  kept(draft, server, `${at}.spiffeTrustDomains`, ({ name }) => {
    const domain = domains.get(name) ?? onlyFiles
    return typeof domain === 'string' || used.has(name) ? domain : 'no converted client refers to it'
  })
}

/** Returns the trust domain, or the reason why it is dropped. */
function toTrustDomain({ methods, bundleSource, ...rest }: Fields): Fields | string {
  const { file } = isFields(bundleSource) ? bundleSource : {}
  const { configMapName: name, configMapKey: key } = isFields(file) ? file : {}
  if (typeof name !== 'string' || typeof key !== 'string') return onlyFiles
  return allowsJwt(methods) ? { ...rest, bundleSource: { configMapRef: { name, key } } } : onlyJwt
}

/** Returns the client, or the reason why it is dropped. */
function toWorkload(client: Fields, domains: ReadonlyMap<unknown, Fields | string>): Fields | string {
  const { trustDomainRef, principalPattern, clientId, methods, grantTypes, scopes, resources } = client
  if (!isFields(domains.get(trustDomainRef))) return 'the client’s trust domain is not converted'
  if (!allowsJwt(methods)) return onlyJwt
  if (grantTypes !== undefined && !listOf(grantTypes).includes('client_credentials'))
    return `a workload gets tokens only for itself; ${delegate}`
  const own = listOf(scopes).filter((scope) => !userScopes.has(scope))
  if (own.length === 0) return 'a client without scopes gets no tokens in Gatehouse'
  const withResources = listOf(resources).length > 0 ? { resources } : {}
  return { trustDomainRef, principalPattern, clientId, scopes: own, ...withResources }
}

function allowsJwt(methods: unknown): boolean {
  return methods === undefined || listOf(methods).includes('spiffe_jwt')
}

/**
 * Replaces the items of a list. `convert` returns the new item, or the reason why it is dropped. Returns the remaining
 * items.
 */
function kept(
  draft: MigrationDraft,
  parent: unknown,
  path: string,
  convert: (item: Fields) => Fields | string,
): readonly Fields[] {
  const name = path.slice(path.lastIndexOf('.') + 1)
  const holder = mutable(parent)
  if (holder?.[name] === undefined) return []
  const items = fieldsIn(holder[name]).flatMap((item, index) => {
    const converted = convert(item)
    if (typeof converted !== 'string') return [converted]
    draft.note(`${path}[${index}]`, 'lost', converted)
    return []
  })
  if (items.length > 0) holder[name] = items
  else delete holder[name]
  return items
}

/** Keeps the issuers that converted policies refer to. */
function dropUnusedIssuers(draft: MigrationDraft, at: string, server: Mutable): void {
  draft.drop(`${at}.trustedIssuers[].insecureAllowHTTP`, 'lost', 'plain http is rejected')
  const used = new Set(
    draft.fieldsAt(`${at}.inboundGrants.jwtBearer.issuerPolicies[].issuerRef`).map(({ value }) => value),
  )
  const issuers = fieldsIn(server['trustedIssuers'])
  const text = `tokens from other issuers are not accepted as subject tokens; for assertions, ${platform}`
  if (issuers.some(({ name }) => used.has(name))) {
    kept(draft, server, `${at}.trustedIssuers`, (issuer) => (used.has(issuer['name']) ? issuer : text))
  } else draft.drop(`${at}.trustedIssuers`, 'lost', text)
}
