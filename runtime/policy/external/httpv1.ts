/**
 * Wire format httpv1: POST `<url>/decision` with principal, operation, resource and context. The response is `{"allow":
 * true | false}`. Does not support batches.
 * Source: docs/guides/decision-point.md.
 */
import type { RuntimeDecisionPoint } from '../../../schemas/index.ts'
import { actions } from '../requests.ts'
import type { WireFormat } from './format.ts'
import { argumentsText, knownHints, membersText } from './question.ts'

export function httpv1Format({ context }: Pick<RuntimeDecisionPoint, 'context'>): WireFormat {
  return {
    path: '/decision',
    member: 'allow',
    async question({ server, principal }, request) {
      const { feature, operation } = actions[request.action]
      const { id, origin } = request
      const annotations = knownHints(request)
      const args = context?.includeArgs ? await argumentsText(request.arguments) : undefined
      const mcp = [
        ...(context?.includeOperation ? [membersText({ feature, operation, resource_id: id })] : []),
        ...(annotations ? [membersText({ annotations })] : []),
        ...(args === undefined ? [] : [`"args":${args}`]),
      ]
      const members = [
        ...(mcp.length > 0 ? [`"mcp":{${mcp.join(',')}}`] : []),
        ...(context?.includeOperation && origin
          ? [membersText({ gatehouse: { backend: origin.backend, original: origin.original } })]
          : []),
      ]
      const asked = { principal, operation: `mcp:${feature}:${operation}` }
      const resource = `mrn:mcp:${server}:${feature}:${id}`
      return {
        text: `{${membersText(asked)},${membersText({ resource })},"context":{${members.join(',')}}}`,
      }
    },
  }
}
