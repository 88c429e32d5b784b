/** Rejected calls and missing credentials. */
import type { Test } from 'tap'
import { breakEngine } from '../broken-engine.ts'
import { startTokenIssuer, type TokenIssuer } from '../authserver/token-issuer.ts'
import { missingRedis, startRedis } from '../redis.ts'
import { startDecisionPoint } from '../decisions/decision-point.ts'
import { sendJson } from '../vmcp/json-server.ts'
import { hook } from '../vmcp/webhook-rig.ts'
import { deny, startWebhook, type WebhookReply } from '../vmcp/webhook.ts'
import { post } from '../mcp/wire.ts'
import { backend, rig, type Rig } from './rig.ts'
import { type Failure, noState } from './views.ts'

const forbidsEcho = ['permit(principal, action, resource) unless { resource == Tool::"b_echo" };']

const withPolicies = async (t: Test, policies: readonly string[]): Promise<Rig> =>
  rig(t, { b: await backend(t) }, { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } } })

/** A decision point with this response, which `calls` clients use. */
async function decided(t: Test, status: number, calls: number): Promise<Rig> {
  const issuer = await startTokenIssuer()
  const point = await startDecisionPoint(() => (res) => sendJson(res, { allow: true }, status))
  t.teardown(() => Promise.all([issuer.close(), point.close()]))
  const httpv1 = { http: { url: point.url, timeout: '500ms' }, claimMapping: 'standard' }
  const incomingAuth = { ...issuer.incomingAuth, authz: { type: 'httpv1', httpv1 } }
  const headers = { authorization: `Bearer ${await issuer.token('ada')}` }
  const running = await rig(t, { b: await backend(t) }, { incomingAuth }, { headers })
  for (let i = 0; i < calls; i++) await running.call('b_echo')
  return running
}

/** A webhook with this response, called for the given number of calls. */
async function withWebhook(t: Test, reply: WebhookReply, calls: number): Promise<Rig> {
  const webhook = await startWebhook(() => reply)
  t.teardown(() => webhook.close())
  const running = await rig(t, { b: await backend(t) }, { webhooks: { validating: [hook('gate', webhook)] } })
  for (let i = 0; i < calls; i++) await running.call('b_echo')
  return running
}

/** A call with the given number of addresses, which a guardrail rejects. */
async function withGuardrail(t: Test, addresses: number): Promise<Rig> {
  const rule = { name: 'mail', patterns: ['email'], direction: 'arguments', action: 'refuse' }
  const running = await rig(t, { b: await backend(t) }, { guardrails: { redact: [rule] } })
  await running.call('b_echo', { text: 'a@b.co '.repeat(addresses) })
  return running
}

/** A request with this token, or with a token that the issuer did not sign. */
async function presented(t: Test, token: (issuer: TokenIssuer) => Promise<string>): Promise<Rig> {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  const { incomingAuth } = issuer
  const running = await rig(t, { b: await backend(t) }, { incomingAuth })
  const authorization = `Bearer ${await token(issuer)}`
  await post(running.vmcp.url, '{"jsonrpc":"2.0","id":1,"method":"ping"}', { authorization })
  return running
}

export const callFailures: readonly Failure[] = [
  {
    name: 'a policy that permits not this',
    type: 'call_denied',
    lasts: false,
    async drive(t) {
      const running = await withPolicies(t, forbidsEcho)
      for (let i = 0; i < 3; i++) await running.call('b_echo')
      return running
    },
    reason: 'tools/call',
    message: /policies denied a request/,
    fix: /no policy permits the request: gatehouse explain/,
    logged: { level: 'info', method: 'tools/call', item: 'b_echo' },
    metric: 'gatehouse_authorization_decisions_total{server="test-vmcp",decision="denied"} 3',
    call: { name: 'b_echo', outcome: 'denied', denied: { by: 'policy' } },
    silent: noState,
  },
  {
    name: 'a policy that forbids it',
    type: 'call_denied',
    lasts: false,
    async drive(t) {
      const running = await withPolicies(t, [
        'permit(principal, action, resource);',
        'forbid(principal, action, resource == Tool::"b_echo");',
      ])
      await running.call('b_echo')
      return running
    },
    reason: 'tools/call',
    message: /policies denied a request/,
    fix: /a policy forbids the request: gatehouse explain/,
    logged: { policies: ['policies[1]'] },
    call: { name: 'b_echo', outcome: 'denied', denied: { by: 'policy' } },
    silent: noState,
  },
  {
    name: 'a limit',
    type: 'call_limited',
    lasts: false,
    skip: missingRedis,
    async drive(t) {
      const redis = await startRedis()
      t.teardown(() => redis.stop())
      const sessionStorage = { provider: 'redis', address: redis.addr }
      const shared = { maxTokens: 1, refillPeriod: '1h' }
      const running = await rig(t, { b: await backend(t) }, { sessionStorage, rateLimiting: { shared } })
      for (let i = 0; i < 4; i++) await running.call('b_echo')
      return running
    },
    reason: 'shared',
    message: /a rate limit rejected a call/,
    fix: /raise this limit in rateLimiting/,
    logged: { scope: 'shared', operation_type: 'server' },
    metric: 'decision="rejected",scope="shared",operation_type="server"} 3',
    call: { name: 'b_echo', outcome: 'denied', denied: { by: 'rate_limit' } },
    silent: noState,
  },
  {
    name: 'a login that has ended',
    type: 'token_failed',
    lasts: false,
    backend: 'b',
    async drive(t) {
      const backends = { b: { type: 'upstream_inject', upstreamInject: { providerName: 'idp' } } }
      const upstreamTokens = { providers: ['idp'], get: async () => undefined }
      const outgoingAuth = { source: 'inline', backends }
      const running = await rig(t, { b: await backend(t) }, { outgoingAuth }, { upstreamTokens })
      await running.call('b_echo')
      return running
    },
    reason: /^upstream_/,
    message: /a credential for a backend could not be obtained/,
    fix: /ask the user to sign in again/,
    logged: { backend: 'b', strategy: 'upstream_inject', reason: /^upstream_/ },
    metric: 'gatehouse_token_exchanges_total{strategy="upstream_inject",outcome="failure"}',
    silent: noState,
  },
  {
    name: 'a decision point that fails once',
    type: 'decision_failed',
    lasts: false,
    drive: (t) => decided(t, 500, 1),
    reason: 'status',
    message: /the decision point returned no decision/,
    fix: /POST <url>\/decision/,
    logged: { reason: 'status' },
    metric: 'gatehouse_decision_point_answers_total',
    silent: noState,
  },
  {
    name: 'a decision point that is down',
    type: 'decision_point',
    lasts: true,
    drive: (t) => decided(t, 500, 6),
    message: /is not returning decisions: requests are rejected \(status\)$/,
    fix: /POST <url>\/decision/,
    logged: { level: 'error' },
  },
  {
    name: 'a guardrail that refuses',
    type: 'guardrail_matched',
    lasts: false,
    drive: (t) => withGuardrail(t, 1),
    reason: 'mail',
    message: /a guardrail rejected a call or its result/,
    fix: /add an exception to guardrail rule mail/,
    logged: { level: 'warn', rule: 'mail', direction: 'arguments', outcome: 'refused' },
    metric: 'gatehouse_guardrail_matches_total',
    call: { name: 'b_echo', outcome: 'denied', denied: { by: 'guardrail' } },
    silent: noState,
    also: (t, { status }) => void t.notMatch(JSON.stringify(status), 'a@b.co'),
  },
  {
    name: 'guardrails that cannot look through a call',
    type: 'guardrail_failed',
    lasts: false,
    drive: (t) => withGuardrail(t, 100_001),
    reason: 'arguments',
    message: /guardrail check failed/,
    fix: /err contains the error/,
    logged: { level: 'error', direction: 'arguments' },
    metric: 'gatehouse_guardrail_failures_total',
    call: { name: 'b_echo', outcome: 'denied', denied: { by: 'guardrail' } },
    silent: noState,
  },
  {
    name: 'a webhook that refuses',
    type: 'webhook_denied',
    lasts: false,
    drive: (t) => withWebhook(t, deny('no', 'secret of operators'), 1),
    reason: 'request',
    message: /a webhook rejected a call/,
    fix: /ask the operator of webhook gate/,
    logged: { webhook: 'gate', reason: 'secret of operators' },
    metric: 'gatehouse_webhook_calls_total',
    call: { name: 'b_echo', outcome: 'denied', denied: { by: 'webhook' } },
    silent: noState,
    also: (t, { status }) => void t.notMatch(JSON.stringify(status), 'secret of operators'),
  },
  {
    name: 'a webhook that fails once',
    type: 'webhook_failed',
    lasts: false,
    drive: (t) => withWebhook(t, (res) => void res.writeHead(500).end(), 1),
    message: /returned no valid response/,
    fix: /check that webhook gate is running/,
    logged: { level: 'warn', webhook: 'gate' },
    call: { name: 'b_echo', outcome: 'denied', denied: { by: 'webhook' } },
    silent: noState,
  },
  {
    name: 'a webhook that is down',
    type: 'webhook_state',
    lasts: true,
    drive: (t) => withWebhook(t, (res) => void res.writeHead(500).end(), 6),
    message: /^webhook gate returns no valid responses: /,
    fix: /check that webhook gate is running/,
    logged: { webhook: 'gate' },
  },
  {
    name: 'a policy engine that fails',
    type: 'policy_engine_failed',
    lasts: false,
    async drive(t) {
      const running = await withPolicies(t, ['permit(principal, action, resource);'])
      const broken = breakEngine()
      t.teardown(() => broken.repair())
      await running.call('b_echo')
      return running
    },
    message: /the policy engine failed/,
    fix: /err contains the error/,
    logged: { level: 'error' },
    metric: 'gatehouse_policy_engine_failures_total',
    silent: noState,
  },
  {
    name: 'a token for somebody else',
    type: 'token_refused',
    lasts: false,
    drive: (t) =>
      presented(t, async (issuer) => {
        const other = await startTokenIssuer()
        t.teardown(() => other.close())
        return other.token('ada', { iss: issuer.issuer })
      }),
    message: /client access tokens rejected/,
    fix: /gatehouse doctor/,
    logged: { level: 'info' },
    call: { outcome: 'unauthenticated' },
    silent: noState,
  },
  {
    name: 'an issuer that is gone',
    type: 'token_check_failed',
    lasts: true,
    drive: (t) =>
      presented(t, async (issuer) => {
        const token = await issuer.token('ada')
        await issuer.close()
        return token
      }),
    message: /^client access tokens cannot be checked: requests are rejected/,
    fix: /gatehouse doctor/,
    logged: { level: 'warn', err: Object },
  },
  {
    name: 'an action in the console that is refused',
    type: 'console_action',
    lasts: false,
    async drive(t) {
      const running = await rig(t, { b: await backend(t) })
      const me = (await (await running.api('me')).json()) as { csrf: string }
      const origin = new URL((await running.api('me')).url).origin
      const headers = { origin, 'x-gatehouse-csrf': me.csrf }
      const response = await running.api('backends/nobody/recheck', { method: 'POST', headers })
      t.equal(response.status, 404)
      return running
    },
    reason: 'backend_rechecked',
    message: /console action/,
    fix: /audit log/,
    logged: { level: 'warn', outcome: 'failure', target: 'nobody' },
    silent: { condition: 'what people do in the console is no state of the resource' },
  },
]
