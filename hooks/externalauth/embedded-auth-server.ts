/**
 * Type `embeddedAuthServer`: not a way to authenticate to a backend, but a server of its own. Its checks also serve
 * spec.authServerConfig of a VirtualMCPServer.
 */
import type { EmbeddedAuthServerConfig, OAuth2UpstreamConfig, Violation } from '../../schemas/index.ts'
import { authServerSecrets } from '../runtime-config/auth-server.ts'
import type { Conditions } from '../sync/conditions.ts'
import type { ExternalAuthModule } from './module.ts'

export const embeddedAuthServer: ExternalAuthModule = {
  validate: ({ embeddedAuthServer: config }) =>
    config ? authServerViolations(config, 'spec.embeddedAuthServer') : [],
  secrets: ({ embeddedAuthServer: config }) => (config ? authServerSecrets(config) : []),
  toRuntime: () => ({ value: undefined }),
}

/** Problems that the schema cannot say. An http issuer is not among them: that one is found at reconcile. */
export function authServerViolations(config: EmbeddedAuthServerConfig, path: string): Violation[] {
  return [
    ...urlViolations(config.issuer, `${path}.issuer`),
    ...(config.authorizationEndpointBaseUrl === undefined
      ? []
      : urlViolations(config.authorizationEndpointBaseUrl, `${path}.authorizationEndpointBaseUrl`)),
    ...reservedName(config, path),
  ]
}

function urlViolations(url: string, path: string): Violation[] {
  if (!URL.canParse(url)) return [{ path, message: 'is not a URL' }]
  const { username, password } = new URL(url)
  return username === '' && password === '' ? [] : [{ path, message: 'must not carry credentials' }]
}

/** An upstream that has no name is called `default`, so among several nobody may have that name. */
function reservedName({ upstreamProviders }: EmbeddedAuthServerConfig, path: string): Violation[] {
  if (upstreamProviders.length < 2) return []
  return upstreamProviders.flatMap(({ name }, index) =>
    name === 'default'
      ? [
          {
            path: `${path}.upstreamProviders[${index}].name`,
            message: '"default" is reserved when there are several',
          },
        ]
      : [],
  )
}

/** What the author of valid settings should know; `where` names them. */
export function authServerWarnings(config: EmbeddedAuthServerConfig, where: string): string[] {
  const found: string[] = []
  if (issuerFailure(config) !== undefined) {
    found.push(
      `${where}.issuer: http needs insecureAllowHTTP on this host; the server will not start without it`,
    )
  }
  if (!config.signingKeySecretRefs?.length) {
    found.push(
      `${where}: without signingKeySecretRefs every restart invalidates all tokens (development only)`,
    )
  }
  if (!config.hmacSecretRefs?.length) {
    found.push(
      `${where}: without hmacSecretRefs every restart invalidates codes and refresh tokens (development only)`,
    )
  }
  return found
}

/** Why the issuer may not be used: http on a host that is not local, without insecureAllowHTTP. */
export function issuerFailure(config: EmbeddedAuthServerConfig): string | undefined {
  const insecure = [config.issuer, config.authorizationEndpointBaseUrl].find(
    (url) => url !== undefined && url.startsWith('http://') && !isLocal(url),
  )
  if (insecure === undefined || config.insecureAllowHTTP) return undefined
  return 'issuer and authorizationEndpointBaseUrl must be https; http is for localhost, or for trusted in-cluster hosts with insecureAllowHTTP'
}

function isLocal(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/** Sets the condition that names the oauth2 upstreams whose users get a synthetic identity. */
export function checkUserIdentities(conditions: Conditions, config: EmbeddedAuthServerConfig): void {
  const names = config.upstreamProviders
    .filter(({ oauth2Config }) => oauth2Config !== undefined && !hasIdentity(oauth2Config))
    .map(({ name }) => name)
    .sort()
  const [status, reason, message] =
    names.length > 0
      ? ([
          'True',
          'OAuth2UpstreamWithoutUserInfo',
          `Users get an identity derived from their access token at: ${names.join(', ')}`,
        ] as const)
      : (['False', 'AllUpstreamsHaveUserInfo', 'Every upstream identifies its users'] as const)
  conditions.set('IdentitySynthesized', status, reason, message)
}

function hasIdentity({ userInfo, identityFromToken }: OAuth2UpstreamConfig): boolean {
  return userInfo !== undefined || identityFromToken !== undefined
}
