/** Verifies with two dry runs that the API server calls the webhook and enforces its response. Nothing is stored. */
import { apiGroup, apiVersion, GatehouseError } from '../../schemas/index.ts'
import type { ApiServer, ClusterResponse } from '../base/api-server.ts'

/** Both policies match the CRD schema. Only the webhook detects the invalid policy. */
const policies = { valid: 'permit(principal, action, resource);', invalid: 'permit(' } as const

/** Throws if a valid object is rejected, or if an invalid object is admitted or is rejected for a different reason. */
export async function assertAdmission(api: ApiServer, namespace: string): Promise<void> {
  const valid = await createPolicy(api, namespace, policies.valid)
  if (valid.status !== 201) throw failed('the API server rejected a valid object', valid)
  const invalid = await createPolicy(api, namespace, policies.invalid)
  if (invalid.status === 201)
    throw failed('the API server admitted an invalid object; it does not call the webhook', invalid)
  if (!messageOf(invalid).includes(`validate.${apiGroup}`) || !messageOf(invalid).includes('policies'))
    throw failed('the API server rejected an invalid object for an unexpected reason', invalid)
}

function createPolicy(api: ApiServer, namespace: string, policy: string): Promise<ClusterResponse> {
  return api({
    method: 'POST',
    path: `/apis/${apiVersion}/namespaces/${encodeURIComponent(namespace)}/mcpauthzconfigs?dryRun=All`,
    body: {
      apiVersion,
      kind: 'MCPAuthzConfig',
      metadata: { name: 'gatehouse-test' },
      spec: { type: 'cedarv1', config: { policies: [policy] } },
    },
  })
}

function messageOf({ body }: ClusterResponse): string {
  return typeof body['message'] === 'string' ? body['message'] : ''
}

function failed(what: string, response: ClusterResponse): GatehouseError {
  const detail = `${what} (${response.status} ${messageOf(response).slice(0, 500)})`
  return new GatehouseError('INTERNAL', { detail })
}
