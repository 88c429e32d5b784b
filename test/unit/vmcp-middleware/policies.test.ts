/**
 * The middlewares for authorization and rate limits, around a pipeline end that records each operation that reaches it.
 */
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import {
  type FactsResponse,
  makeAuthorizer,
  makeGate,
  makeRateLimiter,
  type RateLimiter,
} from '../../../runtime/policy/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import type { OperationClient } from '../../../runtime/vmcp/model/session.ts'
import { type Link, ownOperation } from '../../../runtime/vmcp/model/operation.ts'
import { type Outcome, resultOutcome } from '../../../runtime/vmcp/model/outcome.ts'
import { authorize } from '../../../runtime/vmcp/call/authorize.ts'
import { type ChainLinks, makeChain } from '../../../runtime/vmcp/call/chain.ts'
import { rateLimit } from '../../../runtime/vmcp/call/rate-limit.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { proves } from '../../helpers/proves.ts'

function clientOf(era: OperationClient['era'] = 'session', subject = 'ada'): OperationClient {
  return {
    era,
    protocolVersion: '2025-11-25',
    caller: makeCaller({ issuer: 'i', subject, claims: { sub: subject } }),
    abilities: {
      raw: Buffer.from('{}'),
      elicitation: false,
      sampling: false,
      roots: false,
      signature: '',
      extensions: new Set(),
    },
    info: undefined,
    headers: {},
    session: undefined,
  }
}

/** Runs an operation through the middlewares; `reached` is true if it got to the end. */
async function run(
  middlewares: readonly Link[],
  client: OperationClient,
  method: string,
  params: unknown,
  end: Outcome = resultOutcome({ content: [] }),
): Promise<{ readonly outcome: Outcome; readonly reached: boolean }> {
  const operation = ownOperation(client, method, params, new AbortController().signal)
  let reached = false
  const core = (): Promise<Outcome> => {
    reached = true
    return Promise.resolve(end)
  }
  const chain = middlewares.reduceRight<() => Promise<Outcome>>(
    (next, middleware) => () => middleware(operation, next),
    core,
  )
  return { outcome: await chain(), reached }
}

const gateOf = (...policies: string[]) =>
  makeGate(
    makeAuthorizer(
      { policies, entitiesJson: '[]', groupEntityType: 'ServiceGroup' },
      { serverName: 'front' },
    ),
    { unknownMethods: 'pass' },
  )

const guarded = (facts: FactsResponse, ...policies: string[]): Link =>
  authorize({ gate: gateOf(...policies), factsOf: () => Promise.resolve(facts) })

const limiterOf = (maxTokens: number): RateLimiter =>
  makeRateLimiter({
    config: { shared: { maxTokens, refillPeriod: '1h' } },
    store: makeMemoryStore({ now: () => 0 }),
    namespace: 'team',
    server: 'front',
  })

const limited = (maxTokens: number): Link => rateLimit(limiterOf(maxTokens))

const parse = (outcome: Outcome): unknown =>
  outcome.kind === 'result' ? JSON.parse(outcome.result.toString()) : outcome.kind

t.test('authorize: a denied operation is not passed on', async (t) => {
  const middleware = guarded(undefined, 'permit(principal, action, resource == Tool::"a");')
  t.equal((await run([middleware], clientOf(), 'tools/call', { name: 'a' })).reached, true)
  let reached = false
  const watch: Link = (operation, next) => {
    reached = true
    return next(operation)
  }
  await t.rejects(run([middleware, watch], clientOf(), 'tools/call', { name: 'b' }), {
    code: 'FORBIDDEN',
    message: 'call denied by authorization policy',
  })
  t.equal(reached, false)
})

t.test('authorize: looks up hints for the calling client', async (t) => {
  const gate = gateOf(
    'permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };',
  )
  const asked: string[] = []
  const middleware = authorize({
    gate,
    factsOf: (client, { id }) => {
      asked.push(`${client.caller.subject} ${id}`)
      return Promise.resolve({
        hints: { readOnlyHint: id === 'look' },
        origin: { backend: 'b', original: id },
      })
    },
  })
  t.equal((await run([middleware], clientOf(), 'tools/call', { name: 'look' })).reached, true)
  await t.rejects(run([middleware], clientOf('session', 'bob'), 'tools/call', { name: 'write' }), {
    code: 'FORBIDDEN',
  })
  t.strictSame(asked, ['ada look', 'bob write'])
})

t.test('authorize: filters lists and returns every other outcome unchanged', async (t) => {
  const middleware = guarded(undefined, 'permit(principal, action, resource == Tool::"a");')
  const list = resultOutcome({ tools: [{ name: 'a' }, { name: 'b' }] })
  t.strictSame(parse((await run([middleware], clientOf(), 'tools/list', {}, list)).outcome), {
    tools: [{ name: 'a' }],
  })
  const whole = resultOutcome({ tools: [{ name: 'a' }] })
  t.equal((await run([middleware], clientOf(), 'tools/list', {}, whole)).outcome, whole)
  const failure: Outcome = { kind: 'error', error: Buffer.from('{"code":-1,"message":"x"}') }
  t.equal((await run([middleware], clientOf(), 'tools/list', {}, failure)).outcome, failure)
  const called = resultOutcome({ content: [], tools: [{ name: 'b' }] })
  t.equal((await run([middleware], clientOf(), 'tools/call', { name: 'a' }, called)).outcome, called)
})

t.test('rateLimit: a rejected call is not passed on', async (t) => {
  proves('3.config.rateLimiting.shared')
  const middleware = limited(1)
  t.equal((await run([middleware], clientOf(), 'tools/call', { name: 'a' })).reached, true)
  const refused = await run([middleware], clientOf(), 'tools/call', { name: 'a' })
  t.equal(refused.reached, false)
  t.strictSame(parse(refused.outcome), {
    content: [{ type: 'text', text: 'Rate limit exceeded' }],
    structuredContent: { code: 429, message: 'Rate limit exceeded', data: { retryAfterSeconds: 3600 } },
    isError: true,
  })
  t.equal((await run([middleware], clientOf(), 'tools/list', {})).reached, true, 'lists are free')
})

t.test('rateLimit: stateless clients get an error', async (t) => {
  const middleware = limited(1)
  await run([middleware], clientOf('stateless'), 'tools/call', { name: 'a' })
  await t.rejects(run([middleware], clientOf('stateless'), 'tools/call', { name: 'a' }), {
    code: 'RATE_LIMITED',
    rpcCode: 429,
    message: 'Rate limit exceeded',
    data: { retryAfterSeconds: 3600 },
  })
})

/** Calls a tool through a chain with one token, policies for the user ada, and a single known tool `a`. */
function startChain() {
  const pass: Link = (operation, next) => next(operation)
  const unknown = new GatehouseError('INVALID_PARAMS', { detail: 'tool "x" not found' })
  const links: ChainLinks = {
    features: [],
    authorize: guarded(
      { hints: {}, origin: { backend: 'b', original: 'a' } },
      'permit(principal == Client::"ada", action, resource);',
    ),
    resolveTarget: () => (operation, next) =>
      operation.params.text('name') === 'a' ? next(operation) : Promise.reject(unknown),
    rateLimit: limited(1),
    readableErrors: pass,
    route: pass,
    quota: pass,
    send: () => Promise.resolve(resultOutcome({ content: [] })),
  }
  const { perform } = makeChain(links)
  return (subject: string, name: string) =>
    perform(ownOperation(clientOf('session', subject), 'tools/call', { name }, new AbortController().signal))
}

t.test('chain: denied calls and calls to unknown tools take no token of the rate limit', async (t) => {
  const call = startChain()
  for (let i = 0; i < 3; i++) {
    await t.rejects(call('eve', 'a'), { code: 'FORBIDDEN' })
    await t.rejects(call('ada', 'x'), { code: 'INVALID_PARAMS', message: 'tool "x" not found' })
  }
  t.notMatch(parse(await call('ada', 'a')), { isError: true })
  t.match(parse(await call('ada', 'a')), { isError: true })
})

t.test('chain: a denied caller cannot find out whether a tool exists', async (t) => {
  const call = startChain()
  await t.rejects(call('eve', 'x'), { code: 'FORBIDDEN' })
})
