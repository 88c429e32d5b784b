/**
 * Queries a running server through its console, which authenticates the caller. The token is sent only to this machine,
 * and never to the target of a redirect.
 */
import { GatehouseError, isFields, invalidConfig } from '../../../schemas/index.ts'
import { isLoopbackHost } from '../../net/index.ts'
import type { ExplainQuestion, Explanation } from './types.ts'

const timeoutMs = 10_000
type LiveQuestion = Omit<ExplainQuestion, 'claims'> & Partial<Pick<ExplainQuestion, 'claims'>>

/** Rejects with INVALID_CONFIG, which contains the next step. */
export async function explainLive(url: string, token: string, question: LiveQuestion): Promise<Explanation> {
  const base = URL.canParse(url) ? new URL(url) : undefined
  if (!base || !isLoopbackHost(base.hostname))
    throw invalidConfig(`--url must be a loopback address, such as http://127.0.0.1:21875/`)
  const me = await ask(new URL('api/v1/me', base), token, {})
  const csrf = isFields(me) && typeof me['csrf'] === 'string' ? me['csrf'] : ''
  const { arguments: args, ...rest } = question
  const body = { ...rest, ...(args === undefined ? {} : { arguments: JSON.stringify(args) }) }
  const answer = await ask(new URL('api/v1/policies/explain', base), token, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', 'x-gatehouse-csrf': csrf, origin: base.origin },
  })
  if (!isFields(answer) || !Array.isArray(answer['steps']))
    throw invalidConfig(`${url} is not the console of a virtual server`)
  return answer as unknown as Explanation
}

async function ask(url: URL, token: string, init: RequestInit): Promise<unknown> {
  let response: Response
  try {
    response = await fetch(url, {
      ...init,
      headers: { ...(init.headers as Record<string, string> | undefined), 'x-gatehouse-launch': token },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
  } catch (cause) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${url.origin} did not respond: is the console enabled?`,
      cause,
    })
  }
  if (response.status === 401)
    throw invalidConfig('the console rejected the token: use the one that it printed most recently')
  if (!response.ok) {
    const problem: unknown = await response.json().catch(() => undefined)
    const detail = isFields(problem) && typeof problem['detail'] === 'string' ? problem['detail'] : ''
    throw invalidConfig(`the console responded with status ${response.status} ${detail}`.trim())
  }
  return response.json().catch(() => undefined)
}
