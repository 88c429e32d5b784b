/**
 * Builds the file for a virtual server's embedded authorization server, and checks it against the incoming
 * authentication and the policies.
 * Source: docs/reference/specification/virtual-server.md, "spec.authServerConfig", Errors.
 */
import {
  type CABundleSource,
  type EmbeddedAuthServerConfig,
  formatViolations,
  type input,
  type RuntimeAuthz,
  type RuntimeIncomingAuth,
  type RuntimeOidc,
} from '../../../../schemas/index.ts'
import { virtualServerNames } from '../../../children/names.ts'
import { mostReplicas } from '../../../children/serving/availability.ts'
import { ownIssuerReference } from '../../../runtime-config/issuers.ts'
import type { SyncFailure } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import { fieldsOf } from '../../../base/kube.ts'
import { checkUserIdentities, issuerFailure } from '../../../externalauth/index.ts'
import { caBundleFailure } from '../../../references/resolve.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import {
  authServerPart,
  authServerSecrets,
  checkAuthServerReplicas,
  resourceFailure,
  restartSecrets,
  upstreamPairFailure,
} from '../../../runtime-config/auth-server.ts'
import { authServerBundles } from '../../../runtime-config/config-maps.ts'
import { exposureOf } from '../../common/exposure.ts'
import { asksForCertificates } from '../../common/serving-tls.ts'

type Context = SyncContext<'VirtualMCPServer'>

/** Sets the server's conditions and returns the failure that stops the sync. */
export function checkAuthServer(
  context: Context,
  auth: RuntimeIncomingAuth | undefined,
): SyncFailure | undefined {
  const { spec } = context.parent
  const server = spec.authServerConfig
  const failure = serverFailure(context, auth)
  if (!server) return failure
  context.conditions.check(
    'AuthServerConfigValidated',
    failure,
    'AuthServerConfigValid',
    validMessage(context, server),
  )
  checkUserIdentities(context.conditions, server)
  warnAboutImplicitUpstream(context, server, auth?.authz)
  const observed = context.child('Deployment', virtualServerNames(context.name).server)
  checkAuthServerReplicas(context.conditions, server, mostReplicas(spec, observed))
  return failure
}

/** Sets the condition when the manifest itself is invalid and no other check can run. */
export function checkInvalidAuthServer({ conditions, violations, stored }: Context): void {
  const mine = violations.filter(
    ({ path }) =>
      path.startsWith('spec.authServerConfig') ||
      path.startsWith('spec.authServerUpstreamFilter') ||
      path.endsWith('.inline.primaryUpstreamProvider'),
  )
  if (mine.length === 0) return
  const server = fieldsOf(stored['spec'])['authServerConfig']
  const aboutPrimary = mine.every(({ path }) => path.endsWith('.primaryUpstreamProvider'))
  const reason = !aboutPrimary
    ? 'AuthServerConfigInvalid'
    : server === undefined
      ? 'AuthzPrimaryProviderRequiresAuthServer'
      : 'AuthzUpstreamUnknown'
  conditions.set('AuthServerConfigValidated', 'False', reason, formatViolations(mine))
}

function serverFailure(context: Context, auth: RuntimeIncomingAuth | undefined): SyncFailure | undefined {
  const { authServerConfig: server } = context.parent.spec
  if (!server) return undefined
  const issuer = issuerFailure(server)
  if (issuer !== undefined) return failure('AuthServerConfigInvalid', issuer)
  const names = server.upstreamProviders.map(({ name }) => name)
  const primary = auth?.authz?.primaryUpstreamProvider
  if (primary !== undefined && !names.includes(primary)) {
    return failure(
      'AuthzUpstreamUnknown',
      names.length === 0
        ? `primaryUpstreamProvider ${primary} is unknown, because the list upstreamProviders is empty`
        : `primaryUpstreamProvider ${primary} is not one of ${names.join(', ')}`,
    )
  }
  const secrets = context.missingSecrets(authServerSecrets(server))
  if (secrets.length > 0) return failure('AuthServerConfigInvalid', `Not found: ${secrets.join('; ')}`)
  const anchors = bundleFailure(context, server)
  if (anchors !== undefined) return failure('AuthServerConfigInvalid', anchors)
  const pair = upstreamPairFailure(context, server, 'spec.authServerConfig')
  if (pair) return failure('AuthServerConfigInvalid', pair.message)
  return auth ? oidcFailure(server, auth.oidc) : undefined
}

/** Returns the message for a valid server, which lists missing optional CA bundles. */
function validMessage(context: Context, server: EmbeddedAuthServerConfig): string {
  const absent = authServerBundles(server).flatMap(
    (source) => caBundleFailure(context, source)?.message ?? [],
  )
  const note = absent.length > 0 ? `; the default trust anchors apply: ${absent.join('; ')} (optional)` : ''
  return `The embedded authorization server is configured correctly${note}`
}

function bundleFailure(context: Context, server: EmbeddedAuthServerConfig): string | undefined {
  const failures = authServerBundles(server).flatMap((source) =>
    source.configMapRef.optional ? [] : (caBundleFailure(context, source)?.message ?? []),
  )
  return failures.length > 0 ? failures.join('; ') : undefined
}

/** Returns the settings without optional CA bundles that do not exist. */
function withPresentBundles(context: Context, server: EmbeddedAuthServerConfig): EmbeddedAuthServerConfig {
  const withPresent = <T extends { readonly caBundleRef?: CABundleSource }>({ caBundleRef, ...rest }: T) =>
    caBundleRef && !caBundleFailure(context, caBundleRef) ? { ...rest, caBundleRef } : rest
  const { upstreamProviders, trustedIssuers } = server
  return {
    ...server,
    upstreamProviders: upstreamProviders.map(withPresent),
    ...(trustedIssuers && { trustedIssuers: trustedIssuers.map(withPresent) }),
  }
}

/** Checks that the embedded server and the incoming OIDC settings use the same issuer and resource. */
function oidcFailure(
  server: EmbeddedAuthServerConfig,
  oidc: RuntimeOidc | undefined,
): SyncFailure | undefined {
  if (!oidc) return failure('AuthServerConfigInvalid', 'authServerConfig requires incomingAuth of type oidc')
  if (oidc.issuer !== server.issuer) {
    return failure('AuthServerConfigInvalid', 'the issuer must match the MCPOIDCConfig of incomingAuth')
  }
  if (oidc.audience !== oidc.resource) {
    return failure(
      'AuthServerConfigInvalid',
      'the audience of oidcConfigRef must equal the resource URL, the audience of issued tokens',
    )
  }
  const resources = resourceFailure(server, oidc.resource)
  return resources === undefined ? undefined : failure('AuthServerConfigInvalid', resources)
}

function failure(reason: string, message: string): SyncFailure {
  return { reason, message }
}

function warnAboutImplicitUpstream(
  context: Context,
  server: EmbeddedAuthServerConfig,
  authz: RuntimeAuthz | undefined,
): void {
  const { authzConfig } = context.parent.spec.incomingAuth
  const explicit = server.primaryUpstreamProvider ?? authzConfig?.inline?.primaryUpstreamProvider
  if (!authz || explicit !== undefined || server.upstreamProviders.length < 2) return
  context.conditions.set(
    'AuthzUpstreamSelectionWarning',
    'True',
    'AuthzUpstreamAutoSelected',
    `Policies read the claims of ${server.upstreamProviders[0]?.name}, the first upstream; set authServerConfig.primaryUpstreamProvider to choose another`,
  )
}

/** Returns the file that is stored next to config.yaml; undefined without an embedded server. */
export function authServerFileOf(
  context: Context,
  auth: RuntimeIncomingAuth | undefined,
  needs: PodNeeds,
): input.AuthServerFile | undefined {
  const server = context.parent.spec.authServerConfig
  const oidc = auth?.oidc
  if (!server || !oidc) return undefined
  needs.revision('authServerSecrets', context.secretRevision(restartSecrets(server)))
  return authServerPart(withPresentBundles(context, server), {
    kind: context.stored.kind,
    namespace: context.namespace,
    name: context.name,
    resource: oidc.resource ?? oidc.audience,
    scopes: ownIssuerReference(context.parent.spec.incomingAuth)?.scopes ?? [],
    primaryUpstreamProvider: auth?.authz?.primaryUpstreamProvider ?? server.primaryUpstreamProvider,
    upstreamFilter: context.parent.spec.authServerUpstreamFilter,
    clusterDomain: context.settings.clusterDomain,
    behindEdge: exposureOf(context) !== undefined,
    clientCertificates: asksForCertificates(context),
    needs,
  })
}
