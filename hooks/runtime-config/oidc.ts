/**
 * Configures the validation of incoming tokens, from an MCPOIDCConfig and the server's own values.
 *
 * Secrets become environment variables and CA bundles become mounted directories; the configuration contains only names
 * and paths. When the config specifies a service account, the runtime checks the token's subject. Otherwise, the
 * runtime would accept every pod in the cluster.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, "spec.incomingAuth".
 */
import type {
  InlineOidc,
  IssuerReference,
  KubernetesServiceAccountOidc,
  MCPOIDCConfig,
  MCPOIDCConfigReference,
  RuntimeIssuer,
  RuntimeOidc,
} from '../../schemas/index.ts'
import type { PodNeeds } from './needs.ts'
import { caKey } from '../references/resolve.ts'
import { definedFields } from '../base/kube.ts'

export interface OidcTarget {
  readonly namespace: string
  /** The server's resource, used when the reference does not set one. */
  readonly defaultResource: string
  /** Name of the environment variable for the client secret. */
  readonly clientSecretEnv: string
  readonly needs: PodNeeds
}

const accountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Returns the directory for the trust anchors from a ConfigMap. */
function certificateDirectory(configMap: string): string {
  return `/config/certs/${configMap}`
}

export function oidcPart(
  config: MCPOIDCConfig,
  reference: MCPOIDCConfigReference,
  target: OidcTarget,
): RuntimeOidc {
  const common = {
    audience: reference.audience,
    resource: reference.resourceUrl ?? target.defaultResource,
    scopes: reference.scopes && reference.scopes.length > 0 ? reference.scopes : ['openid'],
  }
  const own = ownPart(config, target)
  // The runtime requires a client ID. The client ID defaults to the audience, which identifies this server to the
  // issuer.
  return definedFields({ ...own, ...common, clientId: own.clientId ?? reference.audience })
}

/** Builds the settings for an additional issuer. */
export function issuerPart(
  config: MCPOIDCConfig,
  reference: IssuerReference,
  target: OidcTarget,
): RuntimeIssuer {
  const own = ownPart(config, target)
  const { audience, subjectPrefix, groupPrefix, advertise } = reference
  const prefixes = { subjectPrefix, groupPrefix, advertise }
  return definedFields({ ...own, audience, clientId: own.clientId ?? audience, ...prefixes })
}

function ownPart({ spec }: MCPOIDCConfig, target: OidcTarget) {
  const { inline, kubernetesServiceAccount: account } = spec
  return inline ? inlinePart(inline, target) : accountPart(account ?? accountDefaults, target.namespace)
}

function inlinePart(inline: InlineOidc, { needs, clientSecretEnv }: OidcTarget) {
  const bundle = inline.caBundleRef?.configMapRef
  if (bundle) needs.configFiles(`oidc-ca-${bundle.name}`, certificateDirectory(bundle.name), bundle.name)
  return {
    issuer: inline.issuer,
    jwksUrl: inline.jwksUrl,
    introspectionUrl: inline.introspectionUrl,
    clientId: inline.clientId,
    clientSecretEnv: inline.clientSecretRef && needs.secretEnv(clientSecretEnv, inline.clientSecretRef),
    caBundlePath: bundle && `${certificateDirectory(bundle.name)}/${caKey(bundle.key)}`,
    jwksAuthTokenPath: inline.jwksAuthTokenPath,
    jwksAllowPrivateIp: inline.jwksAllowPrivateIP,
    protectedResourceAllowPrivateIp: inline.protectedResourceAllowPrivateIP,
    insecureAllowHttp: inline.insecureAllowHTTP,
    subject: undefined,
  }
}

/** Settings that replace an empty block. */
const accountDefaults: KubernetesServiceAccountOidc = {
  issuer: 'https://kubernetes.default.svc',
  useClusterAuth: true,
}

function accountPart(account: KubernetesServiceAccountOidc, ownNamespace: string) {
  const { serviceAccount, useClusterAuth, namespace = ownNamespace } = account
  return {
    issuer: account.issuer,
    jwksUrl: account.jwksUrl,
    introspectionUrl: account.introspectionUrl,
    clientId: undefined,
    clientSecretEnv: undefined,
    caBundlePath: useClusterAuth ? `${accountDirectory}/ca.crt` : undefined,
    jwksAuthTokenPath: useClusterAuth ? `${accountDirectory}/token` : undefined,
    jwksAllowPrivateIp: useClusterAuth,
    protectedResourceAllowPrivateIp: false,
    insecureAllowHttp: false,
    subject: serviceAccount && `system:serviceaccount:${namespace}:${serviceAccount}`,
  }
}

/** True when the pod needs its service account token to fetch keys. */
export function needsAccountToken({ spec }: MCPOIDCConfig): boolean {
  return !spec.inline && (spec.kubernetesServiceAccount ?? accountDefaults).useClusterAuth
}
