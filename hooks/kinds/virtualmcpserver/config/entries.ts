/**
 * Resolves backends, sets their conditions, and adds the headers, trust anchors, client certificates and OpenAPI
 * documents of remote members to the pod.
 */
import { conditionOf } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import { addHeaderForward } from '../../../runtime-config/header-forward.ts'
import { fieldsOf } from '../../../base/kube.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { mountClientCertificate } from '../../../runtime-config/client-certificate.ts'
import {
  caBundleOf,
  clientCertificateOf,
  type ResolvedBackend,
  resolveBackends,
  caBundleDirectory,
} from './backends.ts'
import type { virtualServerReferences } from '../references.ts'
import { isRemote } from '../../../references/members.ts'
import type { ResolvedReferences } from '../../../references/reference.ts'
import { mountDocument } from './openapi.ts'
import { memberAuthority } from '../../common/serving-tls.ts'

type Context = SyncContext<'VirtualMCPServer'>

/**
 * Returns all backends. A backend with broken credentials or a broken tool configuration has a failure and no
 * configuration.
 */
export function backendsWithNeeds(
  context: Context,
  needs: PodNeeds,
  { outgoing, aggregation }: ResolvedReferences<typeof virtualServerReferences>['values'],
): readonly ResolvedBackend[] {
  if (!outgoing) return []
  const ofBackends = needs.forBackends()
  return resolveBackends(context, outgoing).map((resolved) => {
    setCondition(context, resolved)
    const failure = resolved.failure ?? aggregation?.failures.get(resolved.name)
    if (failure || !resolved.backend) return { ...resolved, backend: undefined, failure }
    const headersEnv = addNeeds(context, ofBackends, resolved)
    return headersEnv === undefined ? resolved : { ...resolved, backend: { ...resolved.backend, headersEnv } }
  })
}

function setCondition(context: Context, resolved: ResolvedBackend): void {
  const { name, failure, authConfigRef, strategy, explicit } = resolved
  // The condition for the default strategy covers the backends that use it.
  if (authConfigRef === undefined || (!strategy && !failure)) return
  const type = `${explicit ? 'BackendAuthConfig' : 'DiscoveredAuthConfig'}-${name}`
  const spec = fieldsOf(context.find('MCPExternalAuthConfig', authConfigRef)?.['spec'])
  // This type authenticates callers, but cannot authenticate to a backend.
  if (!failure && spec['type'] === 'embeddedAuthServer') {
    const message = `MCPExternalAuthConfig ${authConfigRef} is an authorization server: requests to the backend are not authenticated`
    context.conditions.set(type, 'True', 'NoOutgoingStrategy', message)
    return
  }
  context.conditions.check(
    type,
    failure,
    'ConversionSucceeded',
    `Uses MCPExternalAuthConfig ${authConfigRef}`,
  )
}

/** Returns the environment variable that contains a remote member's added headers, if any. */
function addNeeds(context: Context, needs: PodNeeds, { name, member }: ResolvedBackend): string | undefined {
  const authority = member && memberAuthority(member)
  if (authority) {
    const items = [{ key: authority.key, path: authority.key }]
    needs.secretFiles(`ca-bundle-${name}`, `${caBundleDirectory}/${name}`, authority.name, items)
  }
  if (!member || !isRemote(member.kind)) return undefined
  // `backend` is set only when the headers are valid.
  const hasHeaders = fieldsOf(member.object['spec'])['headerForward'] !== undefined
  const headersEnv = hasHeaders
    ? addHeaderForward(needs, name, context.filled(member.kind, name)?.spec.headerForward)
    : undefined
  const bundle = caBundleOf(context, member)
  if (bundle) needs.configFiles(`ca-bundle-${name}`, `${caBundleDirectory}/${name}`, bundle.configMap)
  const certificate = clientCertificateOf(member)
  if (certificate !== undefined) mountClientCertificate(needs, name, certificate)
  if (member.kind === 'MCPOpenAPIServer') mountDocument(context, needs, name)
  // The Secrets are two references away, so the sync of the member adds their revision to this condition.
  const message = conditionOf(member.object, 'HeaderSecretRefsValidated')?.['message']
  needs.revision(`entry ${name}`, typeof message === 'string' ? message : undefined)
  return headersEnv
}
