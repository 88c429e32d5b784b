/**
 * Sends a single query or a batch of queries to the decision point over HTTP, in the configured format.
 *
 * The client reads the gateway's credentials from files, which may change. It never sends the caller's token.
 * Source: docs/guides/decision-point.md.
 */
import { invalidConfig } from '../../../schemas/index.ts'
import { rotatingSecret } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import { makeJsonPost } from '../remote/json-post.ts'
import { type Question, readDecision } from './format.ts'
import { endpoint, type ExternalPoint, formatOf } from './formats.ts'

export interface DecisionClient {
  /**
   * Returns true when the decision point allows the request. Rejects with DecisionFailure, or with the signal's reason.
   */
  ask(question: Question, signal: AbortSignal | undefined): Promise<boolean>
  readonly batch: BatchClient | undefined
  close(): Promise<void>
}

interface BatchClient {
  /** Number of queries per request. */
  readonly most: number
  /** Returns one decision per query; undefined for a missing decision. Rejects like `ask`. */
  ask(
    questions: readonly Question[],
    signal: AbortSignal | undefined,
  ): Promise<readonly (boolean | undefined)[]>
}

const maxAnswerBytes = 64 * 1024
/** Maximum size of a response. Decision points return reasons for individual items. */
const maxBatchBytes = 512 * 1024

/** Throws INVALID_CONFIG when a file cannot be used. */
export function makeDecisionClient(point: ExternalPoint, log: Log): DecisionClient {
  const { http } = point.settings
  const field = `incomingAuth.authz.${point.type}.http`
  const token = http.bearerTokenPath === undefined ? undefined : ownToken(http.bearerTokenPath, field, log)
  const { path, member, batch } = formatOf(point)
  const clientFor = (at: string, maxBytes: number) =>
    makeJsonPost(
      { ...http, url: endpoint(point, at) },
      { who: 'the decision point', field, maxAnswerBytes: maxBytes, log },
    )
  const client = clientFor(path, maxAnswerBytes)
  const batchClient = batch && clientFor(batch.path, maxBatchBytes)
  const headers = (): Record<string, string> => (token ? { authorization: `Bearer ${token().reveal()}` } : {})

  return {
    async ask({ text }, signal) {
      return readDecision(await client.post(text, headers(), signal), member)
    },
    batch: batchClient && {
      most: batch.most,
      async ask(questions, signal) {
        const body = await batchClient.post(batch.body(questions), headers(), signal)
        return batch.answers(body, questions.length)
      },
    },
    async close() {
      await Promise.all([client.close(), batchClient?.close()])
    },
  }
}

/** The token must be one line of valid header characters, because it is sent in a header. */
function ownToken(path: string, field: string, log: Log): ReturnType<typeof rotatingSecret> {
  const token = rotatingSecret(path, { log })
  if (!/^[\x21-\x7e]+$/.test(token().reveal()))
    throw invalidConfig(`${field}.bearerTokenPath: the file ${path} does not contain a token`)
  return token
}
