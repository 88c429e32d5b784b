/**
 * Type `embeddedAuthServer`. This type does not authenticate to a backend; it configures an authorization server. A
 * VirtualMCPServer's spec.authServerConfig uses the same checks.
 */
import {
  clientKeyViolations,
  type EmbeddedAuthServerConfig,
  type OAuth2UpstreamConfig,
  spiffeViolations,
  trustViolations,
  type Violation,
} from '../../schemas/index.ts'
import { authServerSecrets, rereadSecrets } from '../runtime-config/auth-server.ts'
import type { Conditions } from '../sync/conditions.ts'
import type { ExternalAuthModule } from './module.ts'

export const embeddedAuthServer: ExternalAuthModule = {
  validate: ({ embeddedAuthServer: config }) =>
    config ? authServerViolations(config, 'spec.embeddedAuthServer') : [],
  secrets: ({ embeddedAuthServer: config }) => (config ? authServerSecrets(config) : []),
  rereadSecrets: ({ embeddedAuthServer: config }) => (config ? rereadSecrets(config) : []),
  toRuntime: () => ({ value: undefined }),
}

/** Returns violations that the schema cannot express. Reconciliation, not admission, rejects an http issuer. */
export function authServerViolations(config: EmbeddedAuthServerConfig, path: string): Violation[] {
  return [
    ...urlViolations(config.issuer, `${path}.issuer`),
    ...(config.authorizationEndpointBaseUrl === undefined
      ? []
      : urlViolations(config.authorizationEndpointBaseUrl, `${path}.authorizationEndpointBaseUrl`)),
    ...reservedName(config, path),
    ...clientViolations(config, path),
    ...[...trustViolations(config), ...spiffeViolations(config)].map((found) => ({
      ...found,
      path: `${path}.${found.path}`,
    })),
  ]
}

function urlViolations(url: string, path: string): Violation[] {
  if (!URL.canParse(url)) return [{ path, message: 'is not a valid URL' }]
  const { username, password } = new URL(url)
  return username === '' && password === '' ? [] : [{ path, message: 'must not contain credentials' }]
}

function clientViolations({ clients = [] }: EmbeddedAuthServerConfig, path: string): Violation[] {
  return clients.flatMap(({ jwks, jwksUri, signingAlg }, index) => {
    const at = `${path}.clients[${index}]`
    return [
      ...(jwks?.keys ?? []).flatMap((key, i) =>
        clientKeyViolations(key, signingAlg, `${at}.jwks.keys[${i}]`),
      ),
      ...(jwksUri === undefined ? [] : urlViolations(jwksUri, `${at}.jwksUri`)),
      ...(jwksUri?.includes('#') ? [{ path: `${at}.jwksUri`, message: 'must not have a fragment' }] : []),
    ]
  })
}

/** An upstream without a name is called `default`, so this name is reserved when there are several upstreams. */
function reservedName({ upstreamProviders }: EmbeddedAuthServerConfig, path: string): Violation[] {
  if (upstreamProviders.length < 2) return []
  return upstreamProviders.flatMap(({ name }, index) =>
    name === 'default'
      ? [
          {
            path: `${path}.upstreamProviders[${index}].name`,
            message: '"default" is reserved when there are several providers',
          },
        ]
      : [],
  )
}

/** Returns admission warnings for valid settings. `where` is the path to the settings. */
export function authServerWarnings(config: EmbeddedAuthServerConfig, where: string): string[] {
  const found: string[] = []
  if (issuerFailure(config) !== undefined) {
    found.push(
      `${where}.issuer: http on this host requires insecureAllowHTTP; without it, the server does not start`,
    )
  }
  if (!config.signingKeySecretRefs?.length) {
    found.push(
      `${where}: without signingKeySecretRefs, every restart invalidates all tokens (development only)`,
    )
  }
  if (!config.hmacSecretRefs?.length) {
    found.push(
      `${where}: without hmacSecretRefs, every restart invalidates codes and refresh tokens (development only)`,
    )
  }
  return [...found, ...replayWarnings(config, where)]
}

/**
 * Warns about replay protection for Kubernetes tokens, because a pod presents the same token until the kubelet renews
 * the token.
 */
function replayWarnings(
  { trustedIssuers = [], clients = [], inboundGrants }: EmbeddedAuthServerConfig,
  where: string,
): readonly string[] {
  const isOnceForPods = (reference: { readonly issuerRef: string; readonly replay: string }): boolean =>
    reference.replay === 'once' &&
    trustedIssuers.some(({ name, preset }) => name === reference.issuerRef && preset === 'kubernetes')
  const policies = inboundGrants?.jwtBearer?.issuerPolicies ?? []
  const paths = [
    ...clients.flatMap(({ federated }, index) =>
      federated && isOnceForPods(federated) ? [`clients[${index}].federated`] : [],
    ),
    ...policies.flatMap((policy, index) =>
      isOnceForPods(policy) ? [`inboundGrants.jwtBearer.issuerPolicies[${index}]`] : [],
    ),
  ]
  return paths.map(
    (path) =>
      `${where}.${path}: with replay set to once, a pod gets no further token until the kubelet renews its token file; set replay to untilExpiry unless each job runs once`,
  )
}

/** Returns an error for an http issuer on a non-local host, unless insecureAllowHTTP is set. */
export function issuerFailure(config: EmbeddedAuthServerConfig): string | undefined {
  const insecure = [config.issuer, config.authorizationEndpointBaseUrl].find(
    (url) => url !== undefined && url.startsWith('http://') && !isLocal(url),
  )
  if (insecure === undefined || config.insecureAllowHTTP) return undefined
  return 'issuer and authorizationEndpointBaseUrl must be https; http is only allowed for localhost, or with insecureAllowHTTP for trusted in-cluster hosts'
}

function isLocal(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/** Sets the condition that lists the oauth2 upstreams whose users get a synthetic identity. */
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
          `These upstreams derive user identities from access tokens: ${names.join(', ')}`,
        ] as const)
      : (['False', 'AllUpstreamsHaveUserInfo', 'Every upstream identifies its users'] as const)
  conditions.set('IdentitySynthesized', status, reason, message)
}

/** False when user identities would be derived from access tokens. */
export function hasIdentity({ userInfo, identityFromToken }: OAuth2UpstreamConfig): boolean {
  return userInfo !== undefined || identityFromToken !== undefined
}
