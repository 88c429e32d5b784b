import fc from 'fast-check'
import t from 'tap'
import { Catalog } from '../../../../runtime/vmcp/catalog/catalog.ts'
import { noErrors } from '../../../../runtime/vmcp/catalog/items/errors.ts'
import type { Listing } from '../../../../runtime/vmcp/catalog/listing.ts'
import { type Aggregation, validateRuntime } from '../../../../schemas/index.ts'
import { proves } from '../../../helpers/proves.ts'

proves(
  '3.config.aggregation.conflictResolution.prefix',
  '3.config.aggregation.conflictResolution.priority',
  '3.config.aggregation.conflictResolution.manual',
  '3.config.aggregation.conflictResolutionConfig.priorityOrder',
  '3.config.aggregation.excludeAllTools',
  '3.config.aggregation.tools',
  '3.config.aggregation.tools.excludeAll',
  '3.config.aggregation.tools.filter',
  '3.config.aggregation.tools.overrides',
  '3.config.aggregation.tools.overrides.routing',
  '3.config.aggregation.tools.overrides.annotations',
  '3.endpoint.tools-list',
)

let serial = 0

interface Offer {
  readonly tools?: readonly (string | Record<string, unknown>)[]
  readonly prompts?: readonly string[]
  readonly resources?: readonly string[]
  readonly templates?: readonly string[]
}

function listing(
  backend: string,
  { tools = [], prompts = [], resources = [], templates = [] }: Offer,
): Listing {
  const item = (key: string, value: unknown) => ({ key, json: Buffer.from(JSON.stringify(value)) })
  return {
    backend,
    serial: ++serial,
    violations: noErrors,
    server: {
      protocolVersion: '2025-11-25',
      capabilities: {
        tools: true,
        resources: true,
        prompts: true,
        completions: false,
        logging: false,
        subscribe: false,
        listChanged: new Set(),
      },
      instructions: undefined,
      extensions: new Map(),
    },
    tools: tools.map((tool) => {
      const value = typeof tool === 'string' ? { name: tool, inputSchema: { type: 'object' } } : tool
      return { ...item(String(value['name']), value), mirrored: [] }
    }),
    prompts: prompts.map((name) => item(name, { name })),
    resources: resources.map((uri) => item(uri, { uri, name: uri })),
    templates: templates.map((uriTemplate) => item(uriTemplate, { uriTemplate, name: uriTemplate })),
  }
}

function aggregation(value: Record<string, unknown>): Aggregation {
  const { config, violations } = validateRuntime('vmcp', {
    name: 'n',
    groupRef: 'g',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
    aggregation: value,
  })
  if (!config) throw new Error(JSON.stringify(violations))
  return config.aggregation
}

function catalog(value: Record<string, unknown>, offers: Record<string, Offer>): Catalog {
  return new Catalog(
    Object.entries(offers).map(([name, offer]) => listing(name, offer)),
    aggregation(value),
  )
}

/** Returns the advertised tools, and the backend tool that each name refers to. */
function routes({ toolList }: Catalog): string[] {
  return toolList.map(({ key, backend, original }) => `${key} -> ${backend}.${original}`)
}

function parsed({ json }: { json: Buffer }): Record<string, unknown> {
  return JSON.parse(json.toString()) as Record<string, unknown>
}

const AB = { a: { tools: ['echo', 'x'] }, b: { tools: ['echo'] } }

t.test('prefix: every tool name starts with its workload, even without a conflict', async (t) => {
  t.same(routes(catalog({}, AB)), ['a_echo -> a.echo', 'a_x -> a.x', 'b_echo -> b.echo'])
  const dotted = { conflictResolutionConfig: { prefixFormat: 'team.{workload}.' } }
  t.same(routes(catalog(dotted, AB)), ['team.a.echo -> a.echo', 'team.a.x -> a.x', 'team.b.echo -> b.echo'])
})

t.test(
  'prefix: when two prefixed names collide, backend order decides and the collision is reported',
  async (t) => {
    const offers = { a: { tools: ['b_c'] }, a_b: { tools: ['c'] } }
    const made = catalog({}, offers)
    t.same(routes(made), ['a_b_c -> a.b_c'])
    t.match(made.problems, [{ kind: 'collision', subject: 'a_b_c', message: /a_b is left out: a offers/ }])
  },
)

t.test(
  'prefix: a fixed prefix is added to every tool, and the first of two colliding tools stays',
  async (t) => {
    const made = catalog({ conflictResolutionConfig: { prefixFormat: 'team-' } }, AB)
    t.same(routes(made), ['team-echo -> a.echo', 'team-x -> a.x'])
    t.match(made.problems, [{ kind: 'collision', subject: 'team-echo' }])
  },
)

t.test(
  'priority: the first workload wins, unique names stay, and unlisted workloads get prefixes',
  async (t) => {
    const order = (...names: string[]) => ({
      conflictResolution: 'priority',
      conflictResolutionConfig: { priorityOrder: names },
    })
    t.same(routes(catalog(order('b'), AB)), ['echo -> b.echo', 'x -> a.x'])
    t.same(routes(catalog(order('a', 'b'), AB)), ['echo -> a.echo', 'x -> a.x'])
    t.same(routes(catalog(order('other'), AB)), ['a_echo -> a.echo', 'b_echo -> b.echo', 'x -> a.x'])
    t.match(catalog(order('b'), AB).problems, [{ kind: 'shadowed', subject: 'echo' }])
  },
)

t.test('built-in tool names: a backend tool with the same name is hidden and reported', async (t) => {
  const taken = new Set(['find_tool', 'call_tool'])
  const made = (value: Record<string, unknown>, reserved = taken) =>
    new Catalog(
      [listing('a', { tools: ['echo', 'find_tool', 'x'] })],
      aggregation(value),
      undefined,
      reserved,
    )
  const overrides = { echo: { name: 'call_tool' } }
  for (const conflictResolution of ['priority', 'manual']) {
    const conflictResolutionConfig = { priorityOrder: ['a'] }
    const one = made({
      conflictResolution,
      conflictResolutionConfig,
      tools: [{ workload: 'a', overrides }],
    })
    t.same(routes(one), ['x -> a.x'])
    t.match(one.problems, [
      {
        kind: 'reserved',
        subject: 'call_tool',
        message: /^tool echo, renamed to call_tool, from a is left out/,
      },
      { kind: 'reserved', subject: 'find_tool', message: /^tool find_tool from a is left out/ },
    ])
    t.equal(one.tools.get('call_tool')?.original, 'echo', 'workflows can use it')
  }
  t.same(routes(made({})), ['a_echo -> a.echo', 'a_find_tool -> a.find_tool', 'a_x -> a.x'], 'prefixed')
  const prefixFormat = 'call{workload}'
  const odd = {
    conflictResolutionConfig: { prefixFormat },
    tools: [{ workload: 'a', overrides: { x: { name: 'b' } } }],
  }
  t.same(
    made(odd, new Set(['callab'])).problems.map(({ subject }) => subject),
    ['callab'],
  )
  const off = made({ conflictResolution: 'manual', tools: [{ workload: 'a', overrides }] }, new Set())
  t.same(routes(off).length, 3, 'without the features the names are free')
  t.same(off.problems, [])
})

t.test(
  'manual: overrides resolve conflicts, and an unresolved conflict hides only the tools involved',
  async (t) => {
    const manual = (tools: unknown) => ({ conflictResolution: 'manual', tools })
    const settled = manual([
      { workload: 'a', overrides: { echo: { name: 'echo_a' } } },
      { workload: 'b', overrides: { echo: { name: 'echo_b' } } },
    ])
    t.same(routes(catalog(settled, AB)), ['echo_a -> a.echo', 'echo_b -> b.echo', 'x -> a.x'])
    const open = catalog(manual([{ workload: 'a' }, { workload: 'b' }]), AB)
    t.same(routes(open), ['x -> a.x'])
    t.match(open.problems, [
      { kind: 'conflict', subject: 'echo', message: /several backends use this name \(a, b\)/ },
    ])
    t.notOk(open.tools.has('echo'), 'no client can call it')
  },
)

t.test(
  'overrides: name, description and single annotations change, and everything else passes through',
  async (t) => {
    const tool = {
      name: 'echo',
      title: 'Echo',
      description: 'old',
      inputSchema: { type: 'object', $defs: { a: {} } },
      annotations: { title: 'T', readOnlyHint: false, custom: 1 },
      _meta: { k: 1 },
    }
    const overrides = { echo: { name: 'say', description: 'new', annotations: { readOnlyHint: true } } }
    const made = catalog({ tools: [{ workload: 'a', overrides }] }, { a: { tools: [tool] } })
    t.same(routes(made), ['a_say -> a.echo'])
    const [entry] = made.toolList
    t.same(entry && parsed(entry), {
      ...tool,
      name: 'a_say',
      description: 'new',
      annotations: { title: 'T', readOnlyHint: true, custom: 1 },
    })
  },
)

t.test(
  'overrides: annotations alone can change, and an override of a missing tool is reported',
  async (t) => {
    const overrides = { echo: { annotations: { destructiveHint: true } }, gone: { name: 'x' } }
    const made = catalog({ tools: [{ workload: 'a', overrides }] }, { a: { tools: ['echo'] } })
    t.match(made.toolList[0]?.annotations, { destructiveHint: true })
    t.match(made.problems, [{ kind: 'unused_override', subject: 'gone' }])
  },
)

t.test(
  'filter: compares the name after the override and before the prefix; workflows can still use filtered tools',
  async (t) => {
    const overrides = { echo: { name: 'say' } }
    const by = (filter: string[]) =>
      catalog({ tools: [{ workload: 'a', overrides, filter }] }, { a: { tools: ['echo', 'x'] } })
    t.same(routes(by(['say'])), ['a_say -> a.echo'])
    t.same(routes(by(['echo'])), [])
    t.same(routes(by([])), ['a_say -> a.echo', 'a_x -> a.x'], 'an empty list allows every tool')
    const hidden = by(['say']).tools.get('a_x')
    t.match(hidden, { advertised: false, backend: 'a', original: 'x' })
  },
)

t.test('visibility: excludeAllTools, excludeAll for one workload, and deny by default', async (t) => {
  const all = catalog({ excludeAllTools: true }, AB)
  t.same(routes(all), [])
  t.equal(all.tools.size, 3)
  t.same(routes(catalog({ tools: [{ workload: 'a', excludeAll: true }] }, AB)), ['b_echo -> b.echo'])
  t.same(routes(catalog({ defaultToolVisibility: 'deny', tools: [{ workload: 'b' }] }, AB)), [
    'b_echo -> b.echo',
  ])
})

t.test(
  'tools with names over 64 characters get an alias; without aliases they are listed and reported',
  async (t) => {
    const name = 'n'.repeat(70)
    const made = catalog({}, { a: { tools: [name] } })
    t.same([...made.aliases.aliasByName.keys()], [`a_${name}`])
    t.same(made.problems, [])
    const plain = catalog({ maxToolNameLength: 0 }, { a: { tools: [name] } })
    t.equal(plain.toolList.length, 1)
    t.equal(plain.aliases.aliasByName.size, 0)
    t.match(plain.problems, [{ kind: 'long_name' }])
  },
)

t.test('a hidden tool has no alias', async (t) => {
  const made = catalog({ excludeAllTools: true }, { a: { tools: ['n'.repeat(70)] } })
  t.equal(made.aliases.aliasByName.size, 0)
})

t.test('prompts: prefixed, or unprefixed by priority; two equal results are both excluded', async (t) => {
  const offers = { a: { prompts: ['p', 'q'] }, b: { prompts: ['p'] } }
  t.same([...catalog({}, offers).prompts.keys()].sort(), ['a_p', 'a_q', 'b_p'])
  const priority = { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['b'] } }
  t.same([...catalog(priority, offers).prompts.keys()].sort(), ['a_p', 'a_q', 'p'])
  const clash = catalog({}, { a: { prompts: ['b_c'] }, a_b: { prompts: ['c', 'd'] } })
  t.same([...clash.prompts.keys()], ['a_b_d'])
  t.match(clash.problems, [{ kind: 'conflict', subject: 'a_b_c' }])
})

t.test('resources: URIs stay the same, and the first backend by name owns a shared URI', async (t) => {
  const made = catalog({}, { b: { resources: ['x://1', 'x://2'] }, a: { resources: ['x://1'] } })
  t.equal(made.findResource('x://1')?.backend, 'a')
  t.equal(made.findResource('x://2')?.backend, 'b')
  t.equal(made.findResource('x://3'), undefined)
})

t.test('templates: an exact resource wins, then the first matching template', async (t) => {
  const made = catalog(
    {},
    {
      a: { templates: ['doc://{id}/text'] },
      b: { resources: ['doc://1/text'], templates: ['doc://{+path}', 'q://s{?q,page}'] },
    },
  )
  t.equal(made.findResource('doc://1/text')?.backend, 'b')
  t.equal(made.findResource('doc://2/text')?.original, 'doc://{+path}')
  t.equal(made.findResource('doc://2/other/deep')?.original, 'doc://{+path}')
  t.equal(made.findResource('q://s?q=1&page=2')?.original, 'q://s{?q,page}')
  t.equal(made.findResource('other://x'), undefined)
})

t.test('the catalog does not depend on the order of listings', async () => {
  const name = fc.constantFrom('a', 'b', 'a_b', 'b_c')
  const tool = fc.constantFrom('c', 'b_c', 'x', 'y')
  const offers = fc.dictionary(
    name,
    fc.record({ tools: fc.uniqueArray(tool), prompts: fc.uniqueArray(tool) }),
    { maxKeys: 4 },
  )
  const strategy = fc.constantFrom<Record<string, unknown>>(
    {},
    { conflictResolution: 'priority', conflictResolutionConfig: { priorityOrder: ['b', 'a_b'] } },
    { conflictResolution: 'manual', tools: [{ workload: 'a' }] },
  )
  fc.assert(
    fc.property(offers, strategy, (offer, value) => {
      const forwards = Object.entries(offer).map(([key, each]) => listing(key, each))
      const one = new Catalog(forwards, aggregation(value))
      const other = new Catalog([...forwards].toReversed(), aggregation(value))
      const keys = one.toolList.map(({ key }) => key)
      return (
        JSON.stringify(one.digests) === JSON.stringify(other.digests) &&
        new Set(keys).size === keys.length &&
        JSON.stringify(keys) === JSON.stringify([...keys].sort())
      )
    }),
  )
})
