/**
 * Wire format authzenv1: the Access Evaluation API and, for lists, the Access Evaluations API.
 *
 * The backend and the original name identify a resource, so a renamed item or another backend's item does not inherit a
 * permission. Gatehouse ignores a response's `context`, which must not reach a client.
 * Source: OpenID AuthZEN Authorization API 1.0, access evaluation and access evaluations;
 * docs/guides/decision-point.md.
 */
import type { RuntimeAuthzenPoint } from '../../../schemas/index.ts'
import { JsonObject, scanElements } from '../../mcp/index.ts'
import { DecisionFailure } from '../remote/json-post.ts'
import { type AccessRequest, actions, methodOf } from '../requests.ts'
import { type BatchFormat, type WireFormat, readDecision } from './format.ts'
import { argumentsText, knownHints, membersText } from './question.ts'

const member = 'decision'

export function authzenFormat({ context }: Pick<RuntimeAuthzenPoint, 'context'>): WireFormat {
  return {
    path: '/access/v1/evaluation',
    member,
    async question({ server, principal: { sub, ...properties } }, request) {
      const args = context?.includeArgs ? await argumentsText(request.arguments) : undefined
      const shared = membersText({
        subject: { type: 'user', id: String(sub), properties },
        action: { name: methodOf[request.action] },
      })
      const resource = membersText({ resource: resourceOf(server, request) })
      // Adds a context, because some decision points reject a batch without a context.
      const environment = [membersText({ server }), ...(args === undefined ? [] : [`"arguments":${args}`])]
      const own = `${resource},"context":{${environment.join(',')}}`
      return { text: `{${shared},${own}}`, shared, own }
    },
    batch,
  }
}

const batch: BatchFormat = {
  path: '/access/v1/evaluations',
  // Default batch limit of decision points.
  most: 50,
  body(questions) {
    const items = questions.map(({ own = '' }) => `{${own}}`)
    return `{${questions[0]?.shared ?? ''},"evaluations":[${items.join(',')}],"options":{"evaluations_semantic":"execute_all"}}`
  },
  answers(body, count) {
    const answers = elementsOf(body).map(decisionIn)
    // Rejects additional evaluations, because only the order matches evaluations to queries.
    if (answers.length > count)
      throw new DecisionFailure('malformed', 'the response from the decision point has too many evaluations')
    return Array.from({ length: count }, (_, at) => answers[at])
  },
}

/**
 * Returns `<server>/<backend>/<original name>`, or `<server>/<name>` for the gateway's own resources and for unknown
 * resources.
 */
function resourceOf(server: string, request: AccessRequest): Record<string, unknown> {
  const { action, id: name, origin } = request
  const where = origin === undefined || origin.backend === '' ? [name] : [origin.backend, origin.original]
  const annotations = knownHints(request)
  return {
    type: actions[action].feature,
    id: [server, ...where].join('/'),
    properties: {
      name,
      ...(origin && { backend: origin.backend, original: origin.original }),
      ...(annotations && { annotations }),
    },
  }
}

function elementsOf(body: Buffer): readonly Buffer[] {
  try {
    return scanElements(new JsonObject(body).raw('evaluations') ?? Buffer.alloc(0))
  } catch (cause) {
    throw new DecisionFailure(
      'malformed',
      'the response from the decision point has no list of evaluations',
      {
        cause,
      },
    )
  }
}

function decisionIn(element: Buffer): boolean | undefined {
  try {
    return readDecision(element, member)
  } catch (error) {
    if (error instanceof DecisionFailure) return undefined
    throw error
  }
}
