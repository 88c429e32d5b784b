/**
 * Builds the trusted issuers of an embedded authorization server.
 *
 * The cluster's own issuer does not need any further settings: the pod fetches the key set from the API server, using
 * the token of its ServiceAccount and the CA that every namespace contains.
 */
import type {
  CABundleSource,
  EmbeddedAuthServerConfig,
  input,
  TrustedIssuer,
  Violation,
} from '../../schemas/index.ts'
import { caKey } from '../references/resolve.ts'
import type { PodNeeds } from './needs.ts'

type IssuerFile = NonNullable<input.AuthServerFile['trustedIssuers']>[number]

const directory = '/etc/gatehouse/authserver/trusted-issuers'
const apiServer = /^https:\/\/kubernetes\.default\.svc(\.[a-z0-9.-]+)?\/?$/

export function trustedIssuersPart(
  { trustedIssuers }: EmbeddedAuthServerConfig,
  needs: PodNeeds,
): readonly IssuerFile[] | undefined {
  return trustedIssuers?.map(({ caBundleRef, ...issuer }) => {
    if (isOwnCluster({ ...issuer, caBundleRef })) return ownClusterPart(issuer, needs)
    return caBundleRef ? { ...issuer, caBundlePath: bundlePath(issuer.name, caBundleRef, needs) } : issuer
  })
}

/** True if the issuer is the API server of this cluster, unless the settings describe how to reach it. */
function isOwnCluster({
  preset,
  issuerUrl,
  jwksUrl,
  caBundleRef,
}: Omit<TrustedIssuer, 'caBundleRef'> & { readonly caBundleRef: CABundleSource | undefined }): boolean {
  return (
    preset === 'kubernetes' && apiServer.test(issuerUrl) && jwksUrl === undefined && caBundleRef === undefined
  )
}

function ownClusterPart(issuer: Omit<TrustedIssuer, 'caBundleRef'>, needs: PodNeeds): IssuerFile {
  const { name, issuerUrl } = issuer
  const paths = { ca: `${directory}/${name}/ca`, token: `${directory}/${name}/token` }
  needs.configFiles(`authserver-issuer-ca-${name}`, paths.ca, 'kube-root-ca.crt')
  needs.accountToken(`authserver-issuer-token-${name}`, paths.token, {
    path: 'token',
    audience: issuerUrl,
    expirationSeconds: 3600,
  })
  return {
    ...issuer,
    jwksUrl: `${issuerUrl.replace(/\/$/, '')}/openid/v1/jwks`,
    allowPrivateIPs: true,
    caBundlePath: `${paths.ca}/ca.crt`,
    jwksAuthTokenPath: `${paths.token}/token`,
  }
}

/** Mounts the whole ConfigMap, because the kubelet updates only whole directories. */
function bundlePath(name: string, { configMapRef }: CABundleSource, needs: PodNeeds): string {
  const path = `${directory}/${name}/ca`
  needs.configFiles(`authserver-issuer-ca-${name}`, path, configMapRef.name)
  return `${path}/${caKey(configMapRef.key)}`
}

/**
 * Returns violations for clients and bindings that refer to a resource other than `served`, the server's only resource.
 */
export function resourceViolations(
  { clients = [], inboundGrants }: EmbeddedAuthServerConfig,
  served: string | undefined,
): readonly Violation[] {
  const foreign = (resources: readonly string[] = [], path: string): readonly Violation[] =>
    resources.flatMap((resource, index) =>
      resource === served
        ? []
        : [
            {
              path: `${path}[${index}]`,
              message: `must be ${served}, the resourceUrl of oidcConfigRef; this server issues no other tokens`,
            },
          ],
    )
  const policies = inboundGrants?.jwtBearer?.issuerPolicies ?? []
  return [
    ...clients.flatMap(({ resources }, index) => foreign(resources, `clients[${index}].resources`)),
    ...(inboundGrants?.spiffeClientAuth ?? []).flatMap(({ resources }, index) =>
      foreign(resources, `inboundGrants.spiffeClientAuth[${index}].resources`),
    ),
    ...policies.flatMap(({ acceptedAudiences = [], subjectBindings = [] }, index) => {
      const at = `inboundGrants.jwtBearer.issuerPolicies[${index}]`
      return [
        ...subjectBindings.flatMap(({ allowedResources }, i) =>
          foreign(allowedResources, `${at}.subjectBindings[${i}].allowedResources`),
        ),
        ...acceptedAudiences.flatMap((audience, i) =>
          audience === served
            ? [{ path: `${at}.acceptedAudiences[${i}]`, message: 'must not be a resource of this server' }]
            : [],
        ),
      ]
    }),
  ]
}
