/**
 * Asks the decision point one question over HTTP: POST `<url>/decision`, and 200 with `{"allow": true | false}`.
 *
 * No JSON, or an `allow` that is missing, doubled or no boolean, is a failure, never a decision. Credentials of the
 * gateway itself are read from files that may change; the caller's token is never sent.
 * Source: docs/guides/decision-point.md.
 */
import { invalidConfig, type RuntimeDecisionPointHttp } from '../../../schemas/index.ts'
import { rotatingSecret } from '../../config/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import { DecisionFailure, makeJsonPost } from '../remote/json-post.ts'

export interface DecisionClient {
  /** True when it allows. Rejects with DecisionFailure, or with the signal's reason. */
  ask(question: string, signal: AbortSignal | undefined): Promise<boolean>
  close(): Promise<void>
}

const field = 'incomingAuth.authz.httpv1.http'
const maxAnswerBytes = 64 * 1024

/** Throws INVALID_CONFIG when a file cannot be used. */
export function makeDecisionClient(http: RuntimeDecisionPointHttp): DecisionClient {
  const token = http.bearerTokenPath === undefined ? undefined : ownToken(http.bearerTokenPath)
  const url = `${http.url.replace(/\/+$/, '')}/decision`
  const client = makeJsonPost({ ...http, url }, { who: 'the decision point', field, maxAnswerBytes })

  return {
    async ask(question, signal) {
      const headers = token ? { authorization: `Bearer ${token().reveal()}` } : {}
      return readAnswer(await client.post(question, headers, signal))
    },
    close: () => client.close(),
  }
}

function readAnswer(body: Buffer): boolean {
  try {
    const allow = new JsonObject(body).value('allow')
    if (typeof allow === 'boolean') return allow
  } catch (cause) {
    throw new DecisionFailure('malformed', 'the response of the decision point is no JSON object', { cause })
  }
  throw new DecisionFailure('malformed', 'the response of the decision point has no boolean allow')
}

/** A token is sent as a header: it must be one line of what headers can hold. */
function ownToken(path: string): ReturnType<typeof rotatingSecret> {
  const token = rotatingSecret(path)
  if (!/^[\x21-\x7e]+$/.test(token().reveal()))
    throw invalidConfig(`${field}.bearerTokenPath: the file ${path} holds no token`)
  return token
}
