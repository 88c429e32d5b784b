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
  GatehouseError,
  parseDuration,
} from '../../../schemas/index.ts'
import { invalidConfig, parseConfig, readConfigText } from '../common/config-file.ts'
import { systemReason } from '../common/system-reason.ts'
import type { AuthServerConfig, DeclaredClientSettings, SecretSource } from './settings.ts'

const minSecretLength = 32

type Clients = readonly DeclaredClientSettings[]

/**
 * Returns a function that returns the file's current declared clients. It parses the file only when its text has
 * changed. It throws INVALID_CONFIG when the file violates its schema, or when the clients violate a rule. It does not
 * read their secrets, and does not check other settings, which take effect at the next start.
 */
export function followDeclaredClients(path: string): () => Clients {
  let parsed: { readonly text: string; readonly clients: Clients } | undefined
  return () => {
    const text = readConfigText(path)
    if (parsed?.text !== text) parsed = { text, clients: parseClients(text, path) }
    return parsed.clients
  }
}

function parseClients(text: string, path: string): Clients {
  const file = parseConfig('authserver', text, path)
  const clients = declaredClientsOf(file)
  const { allowedAudiences } = file
  const violations = declaredClientViolations({ clients, allowedAudiences })
  if (violations.length === 0) return clients
  throw invalidConfig(
    violations.map((message) => ({ path: '', message })),
    path,
  )
}

export function declaredClientsOf({ clients = [], allowedAudiences }: AuthServerFile): Clients {
  return clients.map((client, index) => declaredClientOf(client, index, allowedAudiences))
}

function declaredClientOf(
  client: DeclaredClientFile,
  index: number,
  allowedAudiences: readonly string[],
): DeclaredClientSettings {
  const { clientId, jwks, jwksUri, signingAlg, scopes, clientSecretFiles: files } = client
  return {
    clientId,
    signingAlg,
    scopes,
    resources: client.resources ?? allowedAudiences,
    tokenMs: parseDuration(client.tokenLifespan),
    isBound: client.dpopBoundAccessTokens ?? false,
    ...(jwks === undefined ? {} : { jwks }),
    ...(jwksUri === undefined ? {} : { jwksUri }),
    ...(files === undefined
      ? {}
      : { secrets: files.map((file, at) => secretIn(`clients[${index}].clientSecretFiles[${at}]`, file)) }),
  }
}

/** Returns a function that reads the secret. Trims it, because editors and kubectl add newlines. */
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
    const at = `clients[${index}]`
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
