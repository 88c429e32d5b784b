/**
 * Configures how this server authenticates to an upstream provider, and the certificates of the connection.
 *
 * Keys, tokens and certificates are reread, so rotating them does not require a restart.
 * Source: docs/reference/specification/external-auth.md#upstreamProviders; RFC 7523 section 2.2; RFC 8705 section 2.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { AuthServerConfig, OAuth2UpstreamSettings, OidcUpstreamConfig } from '../../config/index.ts'
import { followCaBundle, followTls, type Log, silentLog, type TlsMaterial } from '../../net/index.ts'
import { type OAuthClient, OAuthClientError } from '../../oauth/index.ts'
import { clientViolations, GatewayClient } from '../../outgoing/index.ts'

type UpstreamConfig = OidcUpstreamConfig | OAuth2UpstreamSettings
type ClientSettings = Pick<UpstreamConfig, 'name' | 'type' | 'clientId' | 'clientSecret' | 'clientAuth'>

const secretMethods = {
  clientSecretBasic: 'client_secret_basic',
  clientSecretPost: 'client_secret_post',
} as const

const noSecret = (): undefined => undefined

/** Returns the errors in the keys, tokens and certificates that the providers' settings refer to. */
export function upstreamFileViolations({ upstreams }: AuthServerConfig): readonly string[] {
  return upstreams.flatMap((upstream, index) => {
    const { clientId, clientAuth } = upstream
    const client =
      clientAuth && !sendsSecret(clientAuth)
        ? clientViolations({ clientId, clientAuth }, `${fieldOf(upstream, index)}.`, {
            secret: noSecret,
            now: Date.now,
            log: silentLog,
          })
        : []
    return [...client.map(({ path, message }) => `${path}: ${message}`), ...tlsViolations(upstream, index)]
  })
}

function tlsViolations(upstream: UpstreamConfig, index: number): readonly string[] {
  try {
    followUpstreamTls(upstream, index, silentLog)
    return []
  } catch (error) {
    if (error instanceof GatehouseError) return [error.message]
    throw error
  }
}

/** Returns the trust anchors and the client certificate; undefined for the defaults. Throws INVALID_CONFIG. */
export function followUpstreamTls(
  upstream: UpstreamConfig,
  index: number,
  log: Log,
): (() => TlsMaterial) | undefined {
  const field = `upstreamProviders[${index}]`
  return upstream.clientCertificatePath === undefined
    ? followCaBundle(upstream.caBundlePath, `${field}.caBundlePath`, log)
    : followTls({ ...upstream, insecureSkipVerify: false }, field, log)
}

/**
 * Returns a function that reads the client credentials for one request. `audience` is the default audience of its
 * assertions; undefined means the issuer. The function throws OAuthClientError while the key is unusable.
 */
export function upstreamClient(
  { name, type, clientId = '', clientSecret, clientAuth }: ClientSettings,
  {
    now,
    log,
    audience,
  }: { readonly now: () => number; readonly log: Log; readonly audience?: string | undefined },
): () => OAuthClient {
  if (!clientAuth) return () => ({ clientId, clientSecret: clientSecret?.() })
  if (sendsSecret(clientAuth)) {
    const authMethod = secretMethods[clientAuth.method]
    return () => ({ clientId, clientSecret: clientSecret?.(), authMethod })
  }
  const field = fieldOf({ type }, name)
  const client = new GatewayClient({ clientId, clientAuth }, `${field}.`, { secret: noSecret, now, log })
  return () => {
    try {
      return client.current(audience) ?? { clientId }
    } catch (error) {
      // The message of this error refers to a backend, but its cause describes the file.
      const cause = error instanceof GatehouseError ? (error.cause ?? error) : error
      // The operator can repair the file, so users keep their sign-ins.
      throw new OAuthClientError('unreachable', 'the credential for the upstream provider is unusable', {
        cause,
      })
    }
  }
}

function sendsSecret<T extends { readonly method: string }>(
  auth: T,
): auth is T & { readonly method: keyof typeof secretMethods } {
  return Object.hasOwn(secretMethods, auth.method)
}

function fieldOf({ type }: Pick<UpstreamConfig, 'type'>, which: number | string): string {
  return `upstreamProviders[${which}].${type === 'oidc' ? 'oidcConfig' : 'oauth2Config'}`
}
