/** The order of observers, features, guards and core. */
import t from 'tap'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { makeCaller } from '../../../runtime/net/index.ts'
import type { OperationClient } from '../../../runtime/vmcp/model/session.ts'
import {
  innerOperation,
  type Link,
  type Operation,
  ownOperation,
  type Feature,
  type OwnTool,
} from '../../../runtime/vmcp/model/operation.ts'
import { resultOutcome } from '../../../runtime/vmcp/model/outcome.ts'
import { type ChainLinks, makeChain } from '../../../runtime/vmcp/call/chain.ts'
import type { CallParts } from '../../../runtime/vmcp/call/core.ts'
import { checkState } from '../../../runtime/vmcp/call/send.ts'
import { backendIdentity } from '../../../runtime/vmcp/backends/settings.ts'
import { listTools } from '../../../runtime/vmcp/model/list-tools.ts'

const json = (value: unknown) => new JsonObject(Buffer.from(JSON.stringify(value)))
const client: OperationClient = {
  era: 'session',
  protocolVersion: '2025-11-25',
  caller: makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada' } }),
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
const call = (name: string): Operation =>
  ownOperation(client, 'tools/call', { name }, new AbortController().signal)

function rig(featuresOf: (seen: string[]) => readonly Feature[]) {
  const seen: string[] = []
  const noting =
    (label: string): Link =>
    (operation, next) => {
      seen.push(`${label} ${operation.params.text('name') ?? operation.method}`)
      return next(operation)
    }
  const features = featuresOf(seen)
  const pass: Link = (operation, next) => next(operation)
  const links: ChainLinks = {
    observe: noting('observe'),
    features,
    authorize: noting('guard'),
    resolveTarget: () => pass,
    readableErrors: pass,
    route: pass,
    quota: pass,
    send(operation) {
      seen.push(`core ${operation.params.text('name') ?? operation.method}`)
      return Promise.resolve(resultOutcome({ tools: [{ name: 'a' }] }))
    },
  }
  const { perform } = makeChain(links)
  return { seen, perform }
}

function feature(label: string, seen: string[], tools: readonly OwnTool[]): Feature {
  return {
    surface(operation, next) {
      seen.push(label)
      return next(
        operation.params.text('name') === 'wrapped'
          ? innerOperation(operation, 'tools/call', json({ name: 'real' }))
          : operation,
      )
    },
    tools,
    close: () => Promise.resolve(),
  }
}

t.test('pipeline: without features, an operation passes observation, guards and core', async (t) => {
  const { seen, perform } = rig(() => [])
  await perform(call('x'))
  t.same(seen, ['observe x', 'guard x', 'core x'])
})

t.test('pipeline: the alias links see only the methods that they translate', async (t) => {
  const seen: string[] = []
  const noting =
    (label: string): Link =>
    (operation, next) => {
      seen.push(`${label} ${operation.method}`)
      return next(operation)
    }
  const { perform } = reloadRig({ listAliases: noting('list'), callAliases: noting('call') }, {})
  for (const method of ['tools/list', 'tools/call', 'prompts/list', 'prompts/get'])
    await perform({ ...call('x'), method })
  t.same(seen, ['list tools/list', 'call tools/call'])
})

t.test('pipeline: a surface may continue with another operation, which the guards then check', async (t) => {
  const { seen, perform } = rig((seen) => [feature('search', seen, [])])
  await perform(call('wrapped'))
  t.same(seen, ['observe wrapped', 'search', 'guard real', 'core real'])
})

t.test("pipeline: a feature's tool stands behind the guards, and sees only what is inside", async (t) => {
  const script: OwnTool = {
    name: 'script',
    run: async (operation, inside) => {
      await inside(innerOperation(operation, 'tools/call', json({ name: 'script' })))
      return inside(innerOperation(operation, 'tools/call', json({ name: 'y' })))
    },
  }
  const find: OwnTool = {
    name: 'find',
    run: async (operation, inside) => {
      const tools = await listTools(operation, inside)
      return resultOutcome(tools.map((tool) => tool.text('name')))
    },
  }
  const { seen, perform } = rig((seen) => [feature('search', seen, [find]), feature('code', seen, [script])])
  await perform(call('script'))
  t.same(
    seen,
    ['observe script', 'search', 'code', 'guard script', 'guard script', 'core script', 'guard y', 'core y'],
    'inner calls are checked one by one and never reach the tool itself',
  )
  seen.length = 0
  t.same(await perform(call('find')), resultOutcome(['a']))
  t.same(seen, [
    'observe find',
    'search',
    'code',
    'guard find',
    'code',
    'guard tools/list',
    'core tools/list',
  ])
})

function reloadRig(before: Partial<ChainLinks>, after: Partial<ChainLinks>) {
  const pass: Link = (operation, next) => next(operation)
  const common: ChainLinks = {
    features: [],
    resolveTarget: () => pass,
    readableErrors: pass,
    route: pass,
    quota: pass,
    send: () => Promise.resolve(resultOutcome({})),
  }
  const { perform, replace } = makeChain({ ...common, ...before })
  return { perform, reload: () => replace({ ...common, ...after }) }
}

t.test(
  'pipeline: after a reload, a running call passes the new links that are still ahead of it',
  async (t) => {
    const waiting = Promise.withResolvers<undefined>()
    const seen: string[] = []
    const noting =
      (label: string): Link =>
      (operation, next) => {
        seen.push(label)
        return next(operation)
      }
    const wait: Link = async (operation, next) => {
      await waiting.promise
      return next(operation)
    }
    const { perform, reload } = reloadRig(
      { webhooks: wait, authorize: noting('old policies'), rateLimit: noting('old limit') },
      {
        webhooks: noting('new webhooks'),
        authorize: noting('new policies'),
        guardrail: noting('new guardrail'),
      },
    )
    const outcome = perform(call('x'))
    reload()
    waiting.resolve(undefined)
    await outcome
    t.same(seen, ['new policies', 'new guardrail'], 'the old policies are closed; the old limit is gone')
  },
)

t.test('pipeline: a script of a removed feature passes the current checks', async (t) => {
  const waiting = Promise.withResolvers<undefined>()
  const seen: string[] = []
  const noting =
    (label: string): Link =>
    (operation, next) => {
      seen.push(`${label} ${operation.params.text('name') ?? ''}`)
      return next(operation)
    }
  const script: OwnTool = {
    name: 'script',
    run: async (operation, inside) => {
      await waiting.promise
      return inside(innerOperation(operation, 'tools/call', json({ name: 'y' })))
    },
  }
  const { perform, reload } = reloadRig(
    { features: [feature('code', [], [script])], authorize: noting('old') },
    { authorize: noting('new') },
  )
  const outcome = perform(call('script'))
  await Promise.resolve()
  reload()
  waiting.resolve(undefined)
  await outcome
  t.same(seen, ['old script', 'new y'])
})

t.test('pipeline: state of another backend is rejected before the quota counts the call', async (t) => {
  const settings = { name: 'one', target: { url: new URL('http://one.test/mcp') } }
  const members = new Map([['one', { backend: { name: 'one', settings, isAvailable: true } }]])
  const parts = { members, leftOut: [] } as unknown as CallParts
  const entry = { key: 'x', backend: 'one', original: 'x', json: Buffer.from('{}') }
  let counted = 0
  const { perform } = reloadRig(
    {
      resolveTarget: () => (operation, next) => next({ ...operation, target: { entry, changes: {} } }),
      requestState: checkState({ parts }),
      quota(operation, next) {
        counted++
        return next(operation)
      },
    },
    {},
  )
  await t.rejects(perform({ ...call('x'), stateFor: 'another' }), { code: 'INVALID_PARAMS' })
  t.equal(counted, 0)
  await perform({ ...call('x'), stateFor: backendIdentity(settings as never) })
  t.equal(counted, 1)
  members.clear()
  await t.rejects(perform(call('x')), { code: 'BACKEND_UNAVAILABLE' })
  t.equal(counted, 1)
})
