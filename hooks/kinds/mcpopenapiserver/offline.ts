/**
 * Describes a REST service from manifests, for commands that convert its document without a cluster. The settings are
 * those of a running virtual server, so both produce the same tools.
 */
import {
  type AddressPolicy,
  type input,
  type MCPExternalAuthConfigSpec,
  type MCPOpenAPIServer,
  validManifest,
  withDefaults,
} from '../../../schemas/index.ts'
import { definedFields, type KubeObject } from '../../base/kube.ts'
import { policyFor } from '../../references/addresses.ts'
import { definedItems } from '../../externalauth/module.ts'
import { addedHeaders, documentText } from './document.ts'

/** The document, or the reason why it cannot be read. */
export type OfflineDocument =
  | { readonly text: string }
  | { readonly url: string; readonly sha256: string }
  | { readonly problem: string }

export interface OfflineService {
  readonly baseUrl: string
  readonly addresses: AddressPolicy
  readonly settings: Omit<input.OpenApiBackend, 'document'>
  readonly document: OfflineDocument
  /** Names of the headers that the gateway sets. Tools have no arguments for these headers. */
  readonly headerNames: readonly string[]
  /** Name of the service's MCPExternalAuthConfig, if it is not among the manifests. */
  readonly missingAuth: string | undefined
}

/** `given` returns the objects of a kind in the namespace of the service. Allows loopback addresses, as `dev` does. */
export function offlineService(
  server: MCPOpenAPIServer,
  given: (kind: 'ConfigMap' | 'MCPExternalAuthConfig') => readonly KubeObject[],
): OfflineService {
  const { spec } = withDefaults(server)
  const { baseUrl, allowPrivateEndpoint, apiKeyQuery, operations, overrides, response } = spec
  const authName = spec.externalAuthConfigRef?.name
  const auth = given('MCPExternalAuthConfig').find(({ metadata }) => metadata.name === authName)
  return {
    baseUrl,
    addresses: policyFor(baseUrl, { allowPrivateEndpoint, allowLoopback: true }),
    settings: definedFields({ apiKeyQuery, operations, overrides, response }),
    document: documentOf(spec, given('ConfigMap')),
    headerNames: [...addedHeaders(spec), ...headersOfAuth(auth)],
    missingAuth: auth ? undefined : authName,
  }
}

function documentOf(
  { document: { configMapRef, url = '', sha256 = '' } }: MCPOpenAPIServer['spec'],
  configMaps: readonly KubeObject[],
): OfflineDocument {
  if (!configMapRef) return { url, sha256 }
  const map = configMaps.find(({ metadata }) => metadata.name === configMapRef.name)
  if (!map) return { problem: `ConfigMap ${configMapRef.name} is not among the given files` }
  const { value, failure } = documentText(map, configMapRef)
  return failure ? { problem: failure.message } : { text: value }
}

/** Returns the names of the headers, without names that are always restricted, such as `Authorization`. */
function headersOfAuth(auth: KubeObject | undefined): readonly string[] {
  const { resource } = validManifest(auth)
  if (resource?.kind !== 'MCPExternalAuthConfig') return []
  const { headerInjection, tokenExchange, cloudSts }: MCPExternalAuthConfigSpec = resource.spec
  return [
    ...definedItems([headerInjection?.headerName, tokenExchange?.externalTokenHeaderName]),
    ...(cloudSts ? ['X-Amz-Date', 'X-Amz-Security-Token'] : []),
  ]
}
