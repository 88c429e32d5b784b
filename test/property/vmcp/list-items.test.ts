/**
 * Tests lists with malformed items: clients of both SDK generations can read the remaining items in every era, and no
 * item that they could read is removed.
 *
 * `FC_RUNS` sets the number of lists of each kind, for longer runs by hand.
 */
import { Client as Client2, InMemoryTransport } from '@modelcontextprotocol/client'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport as Transport1 } from '@modelcontextprotocol/sdk/inMemory.js'
import fc from 'fast-check'
import t from 'tap'
import { checkItem } from '../../../runtime/vmcp/catalog/items/check.ts'
import type { ItemKind } from '../../../runtime/vmcp/model/catalog/entries.ts'

t.setTimeout(600_000)

const CASES = Number(process.env['FC_RUNS'] ?? 300)

/** JSON text of values with an unexpected type. */
const junk = fc.constantFrom(
  ...'null null null true 5 -1.5 1e999 "" "x" [] [null] [5] ["x"] {} {"a":null} {"type":"array"} [{}]'.split(
    ' ',
  ),
)

type Json = fc.Arbitrary<string>

function text(...values: string[]): Json {
  return fc.constantFrom(...values.map((value) => JSON.stringify(value)))
}

/** An object whose members may be missing or malformed, in any order. */
function object(members: Record<string, Json>, violationsIn = 8): Json {
  const names = Object.keys(members)
  const values = names.map((name) =>
    fc.oneof(
      { arbitrary: members[name]!, weight: violationsIn },
      { arbitrary: junk, weight: 1 },
      { arbitrary: fc.constant(''), weight: 1 },
    ),
  )
  return fc
    .tuple(fc.tuple(...values), fc.shuffledSubarray(names, { minLength: names.length }))
    .map(([found, order]) => {
      const given = order.flatMap((name) => {
        const value = found[names.indexOf(name)]
        return value ? [`${JSON.stringify(name)}:${value}`] : []
      })
      return `{${given.join(',')}}`
    })
}

function array(item: Json): Json {
  return fc
    .array(fc.oneof({ arbitrary: item, weight: 5 }, junk), { maxLength: 3 })
    .map((items) => `[${items.join(',')}]`)
}

const flag: Json = fc.constantFrom('true', 'false')
const number: Json = fc.constantFrom('0', '1', '0.5', '12345678901234567890', '1e400')
const icon = object({
  src: text('https://x/i.png'),
  mimeType: text('image/png'),
  sizes: array(text('48x48')),
  theme: text('dark', 'light', 'other'),
})
const described = {
  title: text('T'),
  description: text('D'),
  icons: array(icon),
  _meta: fc.constantFrom('{"x":1}', '{"ui":{"y":null}}'),
}

/** Valid and invalid JSON Schemas. */
const { schema } = fc.letrec<{ schema: string; members: string }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('{}', 'true', 'false', '{"type":"string"}', '{"type":["string","null"]}'),
    text('#').map((ref) => `{"$ref":${ref}}`),
    fc
      .constantFrom('#/$defs/a', '#/properties/b', '#/none', 'other.json', '#/$defs/a~0b', '#anchor')
      .map((ref) => `{"$ref":"${ref}"}`),
    fc
      .constantFrom('^a+$', '(', '[', '\\\\p{L}', '\\\\u{1F600}', '(?<=a)b', '(?<n>a)(?<n>b)')
      .map((p) => `{"type":"string","pattern":"${p}"}`),
    object(
      {
        type: text('object', 'array', 'text'),
        properties: tie('members'),
        patternProperties: tie('members'),
        required: array(text('a', 'b')),
        items: fc.oneof(tie('schema'), array(tie('schema'))),
        anyOf: array(tie('schema')),
        not: tie('schema'),
        additionalProperties: tie('schema'),
        enum: fc.constantFrom('[1]', '[]', '["a",null]'),
        const: junk,
        minimum: number,
        maxLength: number,
        multipleOf: number,
        uniqueItems: flag,
        nullable: flag,
        format: text('date', 'nonsense'),
        dependencies: tie('members'),
        if: tie('schema'),
        then: tie('schema'),
        id: text('x'),
        $id: text('https://x/y', 'a b', '#a'),
        $anchor: text('anchor', '5'),
        $defs: tie('members'),
        formatMinimum: text('2020-01-01'),
        default: junk,
      },
      2,
    ),
  ),
  members: fc
    .dictionary(fc.constantFrom('a', 'b', 'id', 'a~b', '__proto__', 'x y', '('), tie('schema'), {
      maxKeys: 3,
    })
    .map(
      (found) =>
        `{${Object.entries(found)
          .map(([name, value]) => `${JSON.stringify(name)}:${value}`)
          .join(',')}}`,
    ),
}))

const objectSchema = object(
  {
    type: fc.constantFrom('"object"', '["object","null"]', '"array"'),
    $schema: text('https://json-schema.org/draft/2020-12/schema'),
    properties: fc.dictionary(fc.constantFrom('a', 'b'), schema, { maxKeys: 2 }).map(
      (found) =>
        `{${Object.entries(found)
          .map(([name, value]) => `"${name}":${value}`)
          .join(',')}}`,
    ),
    required: array(text('a')),
    $defs: fc.constant('{"a":{"type":"string"}}'),
    additionalProperties: flag,
  },
  12,
)

const annotations = object({
  audience: array(text('user', 'assistant', 'robot')),
  priority: number,
  lastModified: text(
    '2025-01-12T15:00:58Z',
    '2025-02-29T00:00:00Z',
    '2024-02-29T00:00Z',
    '2025-01-12T15:00:58',
    '2025-01-12 15:00:58+00:00',
  ),
})

const items: Readonly<Record<ItemKind, Json>> = {
  tools: object({
    name: text('a', 'b', 'c', ''),
    ...described,
    inputSchema: objectSchema,
    outputSchema: fc.oneof(objectSchema, schema),
    annotations: object({
      title: text('A'),
      readOnlyHint: flag,
      destructiveHint: flag,
      idempotentHint: flag,
      openWorldHint: flag,
    }),
    execution: object({ taskSupport: text('optional', 'required', 'forbidden', 'other') }),
  }),
  resources: object({
    uri: text('test://a', 'test://b'),
    name: text('a'),
    ...described,
    mimeType: text('text/plain'),
    size: number,
    annotations,
  }),
  templates: object({
    uriTemplate: text('test://{a}', 'test://{b}'),
    name: text('a'),
    ...described,
    mimeType: text('text/plain'),
    annotations,
  }),
  prompts: object({
    name: text('a', 'b'),
    ...described,
    arguments: array(object({ name: text('x'), title: text('X'), description: text('d'), required: flag })),
  }),
}

const LISTS = {
  tools: { method: 'tools/list', member: 'tools' },
  resources: { method: 'resources/list', member: 'resources' },
  templates: { method: 'resources/templates/list', member: 'resourceTemplates' },
  prompts: { method: 'prompts/list', member: 'prompts' },
} as const

interface Peer {
  readonly era: 'session' | 'stateless'
  /** Reads a list from the JSON text of its items. Rejects when the library rejects the list. */
  read(kind: ItemKind, json: string): Promise<unknown[]>
}

const CAPABILITIES = { tools: {}, resources: {}, prompts: {} }

interface Wire {
  onmessage?: ((message: never) => void) | undefined
  start(): Promise<void>
  send(message: never): Promise<void>
}

/** A minimal server: it answers the handshake of either era, and returns the given list. */
async function serve(wire: Wire, list: () => string): Promise<void> {
  wire.onmessage = (received) => {
    const { id, method, params } = received as {
      id?: number
      method: string
      params?: { protocolVersion?: string }
    }
    if (id === undefined) return
    const opening: Record<string, unknown> = {
      initialize: {
        protocolVersion: params?.protocolVersion,
        capabilities: CAPABILITIES,
        serverInfo: { name: 'x', version: '1' },
      },
      'server/discover': {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: CAPABILITIES,
        ttlMs: 0,
        cacheScope: 'private',
      },
    }
    void wire.send({ jsonrpc: '2.0', id, result: opening[method] ?? JSON.parse(list()) } as never)
  }
  await wire.start()
}

async function listWith(
  client: Pick<Client2, 'listTools' | 'listResources' | 'listResourceTemplates' | 'listPrompts'>,
  kind: ItemKind,
): Promise<unknown[]> {
  switch (kind) {
    case 'tools':
      return (await client.listTools()).tools
    case 'resources':
      return (await client.listResources()).resources
    case 'templates':
      return (await client.listResourceTemplates()).resourceTemplates
    default:
      return (await client.listPrompts()).prompts
  }
}

async function peer(name: 'sdk1' | 'sdk2-session' | 'sdk2-stateless'): Promise<Peer> {
  let list = ''
  const info = { name: 'test', version: '1' }
  const stateless = name === 'sdk2-stateless'
  if (name === 'sdk1') {
    const [ours, theirs] = Transport1.createLinkedPair()
    await serve(theirs, () => list)
    const client = new Client1(info)
    await client.connect(ours)
    return { era: 'session', read: (kind, json) => ((list = json), listWith(client as never, kind)) }
  }
  const [ours, theirs] = InMemoryTransport.createLinkedPair()
  await serve(theirs, () => list)
  const client = new Client2(info, stateless ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {})
  await client.connect(ours)
  return {
    era: stateless ? 'stateless' : 'session',
    read: (kind, json) => ((list = json), listWith(client, kind)),
  }
}

/** Returns the result of a list request as the gateway sends it. */
function result(kind: ItemKind, era: Peer['era'], found: readonly string[]): string {
  const stateless = era === 'stateless' ? '"resultType":"complete","ttlMs":0,"cacheScope":"private",' : ''
  return `{${stateless}"${LISTS[kind].member}":[${found.join(',')}]}`
}

for (const kind of Object.keys(items) as ItemKind[]) {
  t.test(`${kind}: every client can read the remaining items, and no readable item is removed`, async (t) => {
    const peers = await Promise.all((['sdk1', 'sdk2-session', 'sdk2-stateless'] as const).map(peer))
    for (const { era, read } of peers)
      await t.rejects(read(kind, result(kind, era, ['{"name":5}'])), 'a malformed item spoils the list')
    let kept = 0
    let lost = 0
    const list = fc.array(items[kind], { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(list, async (given) => {
        const checked = given.map((json) => ({ json, checked: checkItem(kind, Buffer.from(json)) }))
        const usable = checked.flatMap(({ checked: one }) => ('failure' in one ? [] : [one]))
        kept += usable.length
        lost += given.length - usable.length
        for (const { era, read } of peers) {
          const forms = usable.map(({ json, sessionJson }) =>
            era === 'session' ? (sessionJson ?? json) : json,
          )
          const seen = await read(kind, result(kind, era, forms.map(String)))
          if (seen.length !== usable.length) return false
        }
        for (const { json, checked: one } of checked) {
          if (!('failure' in one) || json.includes('e999')) continue
          // An omitted item is one that no SDK client with sessions accepts, or that has no callable name. Huge numbers
          // are an exception.
          const all = peers.filter(({ era }) => era === 'session')
          const taken = await Promise.all(
            all.map((each) =>
              each.read(kind, result(kind, 'session', [json])).then(
                () => true,
                () => false,
              ),
            ),
          )
          if (
            taken.every(Boolean) &&
            one.key !== undefined &&
            !one.failure.includes('must be a non-empty string')
          )
            return false
        }
        return true
      }),
      { numRuns: CASES, ...(process.env['FC_RUNS'] ? {} : { seed: 42 }) },
    )
    t.ok(kept > CASES / 4, `${kept} items were kept`)
    t.ok(lost > CASES / 20, `${lost} items were removed`)
  })
}
