/** Does the API server ask the webhook, and act on its response? Two dry runs: nothing is stored. */
import { apiGroup, apiVersion, GatehouseError } from '../../schemas/index.ts'
import type { ApiServer, ClusterResponse } from '../base/api-server.ts'

/** The definition of the kind takes both; of a policy only the webhook can tell whether it is one. */
const policies = { good: 'permit(principal, action, resource);', wrong: 'permit(' } as const

/** Throws with the reason when a good object is refused, or a wrong one is admitted or refused by somebody else. */
export async function assertAdmission(api: ApiServer, namespace: string): Promise<void> {
  const good = await created(api, namespace, policies.good)
  if (good.status !== 201) throw failed('a good object was not admitted', good)
  const wrong = await created(api, namespace, policies.wrong)
  if (wrong.status === 201) throw failed('a wrong object was admitted: the webhook is not asked', wrong)
  if (!messageOf(wrong).includes(`validate.${apiGroup}`) || !messageOf(wrong).includes('policies'))
    throw failed('a wrong object was refused, but not for what is wrong with it', wrong)
}

function created(api: ApiServer, namespace: string, policy: string): Promise<ClusterResponse> {
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
