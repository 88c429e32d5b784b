/**
 * The OAuth client that Gatehouse uses at a token endpoint. The client authenticates with a secret, with assertions
 * that it signs, or with a token that the platform issued.
 *
 * All strategies with a token endpoint share this code. Secrets, keys and tokens are reread, so that rotated values
 * take effect without a restart.
 * Source: RFC 6749 section 2.3; RFC 7523 section 2.2.
 */
import type * as schema from '../../schemas/index.ts'
import { GatehouseError, type Violation } from '../../schemas/index.ts'
import { rotatingSecret } from '../config/index.ts'
import { type ClientAuthMethod, type ClientKey, type OAuthClient, readClientKey } from '../oauth/index.ts'
import { type Block, secretReader, secretViolations, type StrategyParts } from './config.ts'

export interface ClientSettings {
  readonly clientId?: string | undefined
  readonly clientSecret?: string | undefined
  readonly clientSecretEnv?: string | undefined
  readonly clientSecretPath?: string | undefined
  readonly clientAuth?: Block<schema.RuntimeClientAuth> | undefined
}

/** A value that can change, and the setting that it comes from. */
interface Source {
  readonly setting: string
  /** Returns undefined when the setting currently has no value. */
  readonly read: () => string | undefined
}

type ReaderParts = Pick<StrategyParts, 'secret' | 'now' | 'log'>

const secretMethods: Readonly<Record<string, ClientAuthMethod>> = {
  clientSecretBasic: 'client_secret_basic',
  clientSecretPost: 'client_secret_post',
}

/**
 * Returns the violations. `prefix` is the first part of the settings' names: `tokenExchange.` or `xaa.idp`. `required`
 * means that the client must authenticate.
 */
export function clientViolations(
  settings: ClientSettings,
  prefix: string,
  parts: ReaderParts,
  { required = false }: { readonly required?: boolean } = {},
): readonly Violation[] {
  const { clientId, clientSecret, clientSecretEnv, clientSecretPath, clientAuth: auth } = settings
  const hasSecret = [clientSecret, clientSecretEnv, clientSecretPath].some((value) => value !== undefined)
  const sendsSecret = auth === undefined || Object.hasOwn(secretMethods, auth.method ?? '')
  const field = nameOf(prefix, 'clientSecret')
  const secret = secretViolations(field, clientSecret, clientSecretEnv, parts, {
    required: sendsSecret && clientSecretPath === undefined && (required || auth !== undefined),
  })
  return [
    ...(clientId || !(required || hasSecret || auth)
      ? []
      : [{ path: nameOf(prefix, 'clientId'), message: 'must be set for a client that authenticates' }]),
    ...secret,
    ...(hasSecret && !sendsSecret
      ? [{ path: field, message: 'is only for the methods clientSecretBasic and clientSecretPost' }]
      : []),
    ...fileViolations(nameOf(prefix, 'clientSecretPath'), clientSecretPath),
    ...(auth ? authViolations(auth, nameOf(prefix, 'clientAuth')) : []),
  ]
}

function authViolations(
  auth: NonNullable<ClientSettings['clientAuth']>,
  field: string,
): readonly Violation[] {
  const { method, privateKeyPath, assertionPath, signingAlg } = auth
  if (method === 'federated') {
    return assertionPath === undefined
      ? [{ path: `${field}.assertionPath`, message: 'is required for method federated' }]
      : fileViolations(`${field}.assertionPath`, assertionPath)
  }
  if (method !== 'privateKeyJwt') return method ? [] : [{ path: `${field}.method`, message: 'is required' }]
  const path = `${field}.privateKeyPath`
  if (privateKeyPath === undefined) return [{ path, message: 'is required for method privateKeyJwt' }]
  try {
    readClientKey(rotatingSecret(privateKeyPath)().reveal(), path, signingAlg)
    return []
  } catch (error) {
    return [{ path, message: reasonOf(error).replace(`${path}: `, '') }]
  }
}

function fileViolations(field: string, path: string | undefined): readonly Violation[] {
  if (path === undefined) return []
  try {
    rotatingSecret(path)
    return []
  } catch (error) {
    return [{ path: field, message: reasonOf(error) }]
  }
}

function reasonOf(error: unknown): string {
  return error instanceof GatehouseError ? error.message : 'cannot be read'
}

export class GatewayClient {
  /** Names of the settings to check when the server rejects the client. */
  readonly settings: string
  readonly #settings: ClientSettings
  readonly #defaultMethod: ClientAuthMethod | undefined
  /** Credential of the client; undefined for a public client. */
  readonly #credential: Source | undefined
  #key: { readonly text: string; readonly key: ClientKey } | undefined

  /** Call `clientViolations` first. `prefix` also contains the path of the strategy. */
  constructor(
    settings: ClientSettings,
    prefix: string,
    parts: ReaderParts,
    defaultMethod?: ClientAuthMethod,
  ) {
    this.#settings = settings
    this.#defaultMethod = defaultMethod
    this.#credential = credentialSource(settings, prefix, parts)
    const names = [nameOf(prefix, 'clientId'), this.#credential?.setting]
    this.settings = names.filter((name) => name !== undefined).join(' and ')
  }

  /** True when the client can get a token for itself. */
  get canActAlone(): boolean {
    return Boolean(this.#settings.clientId) && this.#credential?.read() !== undefined
  }

  /**
   * Returns the secret or key that the client's tokens depend on. Returns undefined for a token from the platform,
   * which is short-lived and does not affect the client's tokens.
   */
  fingerprint(): string | undefined {
    return this.#settings.clientAuth?.method === 'federated' ? undefined : this.#credential?.read()
  }

  /**
   * Returns the client for one request, or undefined without a client id. `audience` is the default audience of its
   * assertions; undefined means the issuer of the server. Throws BACKEND_AUTH_FAILED when a configured credential has
   * become empty or invalid.
   */
  current(audience?: string): OAuthClient | undefined {
    const { clientId, clientAuth } = this.#settings
    if (!clientId) return undefined
    if (!this.#credential) return { clientId, clientSecret: undefined, authMethod: this.#defaultMethod }
    const { setting, read } = this.#credential
    const value = read()
    if (value === undefined) throw authFailure(`${setting}: the variable is not set or is empty`)
    if (clientAuth?.method === 'federated') return { clientId, assertion: value }
    if (clientAuth?.method === 'privateKeyJwt') {
      const { assertionAudience = audience } = clientAuth
      return { clientId, privateKey: this.#privateKey(value, setting), assertionAudience }
    }
    const authMethod = secretMethods[clientAuth?.method ?? ''] ?? this.#defaultMethod
    return { clientId, clientSecret: value, authMethod }
  }

  #privateKey(text: string, setting: string): ClientKey {
    if (this.#key?.text === text) return this.#key.key
    try {
      const key = readClientKey(text, setting, this.#settings.clientAuth?.signingAlg)
      this.#key = { text, key }
      return key
    } catch (cause) {
      throw authFailure(reasonOf(cause), cause)
    }
  }
}

function authFailure(reason: string, cause?: unknown): GatehouseError {
  return new GatehouseError('BACKEND_AUTH_FAILED', {
    detail: `authentication to the backend failed: ${reason}`,
    cause,
  })
}

function credentialSource(
  { clientSecret, clientSecretEnv, clientSecretPath, clientAuth }: ClientSettings,
  prefix: string,
  parts: ReaderParts,
): Source | undefined {
  const auth = nameOf(prefix, 'clientAuth')
  if (clientAuth?.method === 'privateKeyJwt')
    return fileSource(`${auth}.privateKeyPath`, clientAuth.privateKeyPath ?? '', parts)
  if (clientAuth?.method === 'federated')
    return fileSource(`${auth}.assertionPath`, clientAuth.assertionPath ?? '', parts)
  const field = nameOf(prefix, 'clientSecret')
  if (clientSecretPath !== undefined) return fileSource(`${field}Path`, clientSecretPath, parts)
  if (clientSecret === undefined && clientSecretEnv === undefined) return undefined
  const setting = clientSecretEnv === undefined ? field : `${field}Env`
  return { setting, read: secretReader(clientSecret, clientSecretEnv, parts) }
}

function fileSource(setting: string, path: string, { now, log }: ReaderParts): Source {
  const secret = rotatingSecret(path, { now, log })
  return { setting, read: () => secret().reveal() }
}

/** Returns the name of a setting: `tokenExchange.clientId` or `xaa.idpClientId`. */
function nameOf(prefix: string, name: keyof ClientSettings): string {
  return prefix.endsWith('.') ? prefix + name : prefix + name.charAt(0).toUpperCase() + name.slice(1)
}
