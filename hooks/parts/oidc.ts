/**
 * Validation of incoming tokens, from an MCPOIDCConfig and the values that are particular to one server.
 *
 * Secrets go to the environment and CA bundles to mounted directories; the configuration carries names and paths only.
 * A service account named in the config becomes a check of the token's subject, so that not every pod of the cluster is
 * let in. Source: spec document 3, "spec.incomingAuth".
 */
import type { MCPOIDCConfig, MCPOIDCConfigReference, RuntimeOidc } from '../../schemas/index.ts'
import type { PodNeeds } from '../needs.ts'
import { caKey } from '../references.ts'
import { definedFields } from '../status.ts'

export interface OidcTarget {
  readonly namespace: string
  /** Resource of the server when the reference names none. */
  readonly defaultResource: string
  /** Name of the environment variable for the client secret. */
  readonly clientSecretEnv: string
  readonly needs: PodNeeds
}

const accountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Directory that holds the trust anchors of one ConfigMap. */
function certificateDirectory(configMap: string): string {
  return `/config/certs/${configMap}`
}

export function oidcPart(
  config: MCPOIDCConfig,
  reference: MCPOIDCConfigReference,
  target: OidcTarget,
): RuntimeOidc {
  const { spec } = config
  const common = {
    audience: reference.audience,
    resource: reference.resourceUrl ?? target.defaultResource,
    scopes: reference.scopes && reference.scopes.length > 0 ? reference.scopes : ['openid'],
  }
  const own = spec.type === 'inline' ? inline(config, target) : serviceAccount(config, target.namespace)
  return definedFields({ ...own, ...common }) as unknown as RuntimeOidc
}

function inline({ spec }: MCPOIDCConfig, { needs, clientSecretEnv }: OidcTarget) {
  const { inline } = spec
  const bundle = inline?.caBundleRef?.configMapRef
  if (bundle) needs.configFiles(`oidc-ca-${bundle.name}`, certificateDirectory(bundle.name), bundle.name)
  return {
    issuer: inline?.issuer,
    jwksUrl: inline?.jwksUrl,
    introspectionUrl: inline?.introspectionUrl,
    clientId: inline?.clientId,
    clientSecretEnv: inline?.clientSecretRef && needs.secretEnv(clientSecretEnv, inline.clientSecretRef),
    caBundlePath: bundle && `${certificateDirectory(bundle.name)}/${caKey(bundle.key)}`,
    jwksAuthTokenPath: inline?.jwksAuthTokenPath,
    jwksAllowPrivateIp: inline?.jwksAllowPrivateIP ?? false,
    protectedResourceAllowPrivateIp: inline?.protectedResourceAllowPrivateIP ?? false,
    insecureAllowHttp: inline?.insecureAllowHTTP ?? false,
  }
}

function serviceAccount({ spec }: MCPOIDCConfig, ownNamespace: string) {
  const account = spec.kubernetesServiceAccount
  const useClusterAuth = account?.useClusterAuth ?? true
  const namespace = account?.namespace ?? ownNamespace
  return {
    issuer: account?.issuer ?? 'https://kubernetes.default.svc',
    jwksUrl: account?.jwksUrl,
    introspectionUrl: account?.introspectionUrl,
    subject: account?.serviceAccount && `system:serviceaccount:${namespace}:${account.serviceAccount}`,
    caBundlePath: useClusterAuth ? `${accountDirectory}/ca.crt` : undefined,
    jwksAuthTokenPath: useClusterAuth ? `${accountDirectory}/token` : undefined,
    jwksAllowPrivateIp: useClusterAuth,
    protectedResourceAllowPrivateIp: false,
    insecureAllowHttp: false,
  }
}

/** True when the pod needs the token of its service account to fetch keys. */
export function needsAccountToken({ spec }: MCPOIDCConfig): boolean {
  return spec.type === 'kubernetesServiceAccount' && (spec.kubernetesServiceAccount?.useClusterAuth ?? true)
}
