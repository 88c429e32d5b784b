/** Indexes of tool search: one per set of visible tools, built once, bounded in number. */
import t from 'tap'
import { JsonObject } from '../../../../runtime/mcp/index.ts'
import { makeCaller } from '../../../../runtime/net/index.ts'
import { Indexes } from '../../../../runtime/vmcp/features/search/indexes.ts'
import { buildIndex } from '../../../../runtime/vmcp/features/search/tool-index.ts'
import {
  type VisibleTools,
  VisibleToolsReader,
} from '../../../../runtime/vmcp/features/search/visible-tools.ts'
import type { OperationClient } from '../../../../runtime/vmcp/model/session.ts'
import { ownOperation, type Perform } from '../../../../runtime/vmcp/model/operation.ts'

const pageOf = (...tools: unknown[]): Buffer => Buffer.from(JSON.stringify({ tools }))
const setOf = (name: string): VisibleTools => ({
  key: name,
  pages: [pageOf({ name, description: 'Same words' })],
})
const settled = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))

t.test('indexes: equal sets share one index', async (t) => {
  const indexes = new Indexes(new Set())
  const [a, b] = await Promise.all([indexes.of(setOf('one')), indexes.of(setOf('one'))])
  t.equal(a, b)
  t.equal(await indexes.of(setOf('one')), a)
  t.not(await indexes.of(setOf('two')), a)
  t.same(
    [...indexes.all()].map(({ names }) => [...names]),
    [['two'], ['one']],
  )
  indexes.close()
  await settled()
  t.same(a.keywords.search(['words'], 8), [], 'closed')
})

t.test('indexes: the least recently used index is dropped when there are too many', async (t) => {
  const indexes = new Indexes(new Set())
  const first = await indexes.of(setOf('first'))
  const second = await indexes.of(setOf('second'))
  for (let i = 0; i < 255; i++) {
    await indexes.of(setOf(`set ${i}`))
    await indexes.of(setOf('first'))
  }
  await settled()
  t.same(first.keywords.search(['words'], 8), [0])
  t.same(second.keywords.search(['words'], 8), [])
  t.equal([...indexes.all()].length, 256)
  indexes.close()
})

t.test('indexes: a set that cannot be read is read again at the next request', async (t) => {
  const indexes = new Indexes(new Set())
  const broken = { key: 'k', pages: [Buffer.from('{"tools":7}')] }
  await t.rejects(indexes.of(broken), { name: 'JsonError' })
  await settled()
  t.equal((await indexes.of({ ...broken, pages: [pageOf({ name: 'a' })] })).tools.length, 1)
  indexes.close()
})

t.test('an index: tools without a readable name and duplicates are excluded', async (t) => {
  const page = pageOf(
    { name: 'a', description: 7 },
    { description: 'x' },
    7,
    { name: 'a' },
    { name: 'hidden' },
  )
  const index = await buildIndex({ key: 'k', pages: [page] }, new Set(['hidden']))
  t.same([...index.names], ['a'])
  t.equal(index.tokens, Math.floor('{"name":"a","description":7}'.length / 4))
  t.same((await buildIndex({ key: 'k', pages: [Buffer.from('{}')] })).tools, [])
})

t.test('an index: reading a long list does not block other tasks', async (t) => {
  const tools = Array.from({ length: 4_000 }, (_, i) => ({
    name: `tool_${i}`,
    description: 'Does this and that',
  }))
  let turns = 0
  let over = false
  const tick = (): void => {
    turns++
    if (!over) setImmediate(tick)
  }
  setImmediate(tick)
  const index = await buildIndex({ key: 'k', pages: [pageOf(...tools)] })
  over = true
  t.ok(turns > 3, `${turns} turns`)
  t.same(index.keywords.search(['tool_3999'], 8), [3999])
  index.keywords.close()
})

t.test('visible tools: equal lists have one key, whichever buffers contain them', async (t) => {
  const client: OperationClient = {
    era: 'session',
    protocolVersion: '2025-11-25',
    caller: makeCaller({ issuer: 'i', subject: 's', claims: {} }),
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
  const operation = ownOperation(client, 'tools/call', {}, new AbortController().signal)
  const listing = (...pages: Buffer[]): Perform => {
    const linked = pages.map((page, i) =>
      i + 1 < pages.length ? new JsonObject(page).with({ nextCursor: JSON.stringify(String(i + 1)) }) : page,
    )
    return ({ method, params }) => {
      t.equal(method, 'tools/list')
      return Promise.resolve({
        kind: 'result',
        result: linked[Number(params.text('cursor') ?? 0)] ?? pageOf(),
      })
    }
  }
  const reader = new VisibleToolsReader()
  const [a, b] = [pageOf({ name: 'a' }), pageOf({ name: 'b' })]
  const key = async (...pages: Buffer[]) => (await reader.read(operation, listing(...pages))).key
  t.equal(await key(a), await key(Buffer.from(a)))
  t.not(await key(a), await key(b))
  t.equal(await key(a, b), await key(Buffer.from(a), Buffer.from(b)))
  t.not(await key(a, b), await key(a))
  t.equal((await reader.read(operation, listing(a, b))).pages.length, 2)
  const refusing: Perform = () => Promise.reject(new Error('refused'))
  await t.rejects(reader.read(operation, refusing), { message: 'refused' })
})
