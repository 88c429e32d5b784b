/** Arguments of a tool that changed: only arguments in the approved schema reach the backend. */
import t, { type Test } from 'tap'
import { silentLog } from '../../../../runtime/net/index.ts'
import { toolArgumentCheck } from '../../../../runtime/vmcp/catalog/pinning/arguments.ts'
import { makeLog } from '../../../../runtime/observe/index.ts'
import type { MatchSchemas } from '../../../../runtime/vmcp/model/catalog/pinning.ts'
import { WorkerPool } from '../../../../runtime/process/index.ts'
import {
  evaluationPool,
  Evaluator,
  type EvaluatorLimits,
  evaluatorLimits,
  workflowWorker,
} from '../../../../runtime/vmcp/features/workflows/evaluation/evaluator.ts'

t.setTimeout(120_000)

const file = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }
const fits = { path: 'x' }
const smuggled = { path: 'x', note: 'secret' }

function check(inputSchema: object) {
  return toolArgumentCheck(Buffer.from(JSON.stringify({ name: 'read', inputSchema })))
}

const client: Parameters<Evaluator['violations']>[1]['client'] = {
  caller: { key: 'k', issuer: 'i', subject: 's', displayName: 's', claims: {} },
  session: undefined,
}

function matcher(
  t: Test,
  limits: Partial<EvaluatorLimits> = {},
  pool: Partial<ReturnType<typeof evaluationPool>> = {},
  log = silentLog,
): MatchSchemas {
  const workers = new WorkerPool(workflowWorker, { ...evaluationPool(), ...pool })
  const evaluator = new Evaluator(log, { ...evaluatorLimits, ...limits }, workers)
  t.teardown(() => evaluator.close())
  const requester = {
    client,
    signal: new AbortController().signal,
    subject: { backend: 'files', tool: 'read' },
  }
  return (schemas, value) => evaluator.violations({ schemas, value }, requester)
}

const match = matcher(t)

async function violations(schema: object, args: unknown, by = match): Promise<readonly string[]> {
  const found = check(schema)
  if (!found) throw new Error('the schema was rejected')
  return found(Buffer.from(JSON.stringify(args)), by)
}

async function fitsIn(schema: object, args: unknown): Promise<boolean> {
  return (await violations(schema, args)).length === 0
}

const inside = (schema: object, more: object = {}) => ({ type: 'object', properties: { a: schema }, ...more })
const definitions = { $defs: { File: file } }

/** Schemas that contain a model, and the arguments that contain a value of that model. */
const forms: Readonly<Record<string, readonly [object, (model: object) => unknown]>> = {
  'the arguments themselves': [file, (model) => model],
  'a property': [inside(file), (a) => ({ a })],
  'a reference to $defs': [inside({ $ref: '#/$defs/File' }, definitions), (a) => ({ a })],
  'a reference to definitions': [
    inside({ $ref: '#/definitions/File', description: 'A file' }, { definitions: { File: file } }),
    (a) => ({ a }),
  ],
  'a reference at the top': [{ type: 'object', $ref: '#/$defs/File', ...definitions }, (model) => model],
  'a branch of anyOf': [
    inside({ anyOf: [{ $ref: '#/$defs/File' }, { type: 'null' }] }, definitions),
    (a) => ({ a }),
  ],
  'a written-out branch of anyOf': [inside({ anyOf: [file, { type: 'null' }] }), (a) => ({ a })],
  'a branch of oneOf': [inside({ oneOf: [file, { type: 'string' }] }), (a) => ({ a })],
  'an item': [inside({ type: 'array', items: file }), (model) => ({ a: [model] })],
  'a prefix item': [
    inside({ type: 'array', prefixItems: [file], items: false }),
    (model) => ({ a: [model] }),
  ],
  'a value of a map': [
    inside({ type: 'object', additionalProperties: { $ref: '#/$defs/File' } }, definitions),
    (model) => ({ a: { any: model } }),
  ],
  'a member that another member requires': [
    { type: 'object', properties: { x: {} }, dependentSchemas: { x: inside(file) } },
    (a) => ({ x: 1, a }),
  ],
  'a member that another member requires, in draft-07': [
    { type: 'object', properties: { x: {} }, dependencies: { x: inside(file), a: ['x'] } },
    (a) => ({ x: 1, a }),
  ],
  'a value by pattern': [
    inside({ type: 'object', patternProperties: { '^x': file } }),
    (model) => ({ a: { x1: model } }),
  ],
}

t.test('an unapproved member is rejected, wherever the approved members are', async (t) => {
  for (const [name, [schema, wrap]] of Object.entries(forms)) {
    t.ok(await fitsIn(schema, wrap(fits)), `${name}: approved members fit`)
    t.notOk(await fitsIn(schema, wrap(smuggled)), `${name}: an additional member does not`)
  }
})

t.test('branches next to properties are closed together with them', async (t) => {
  const schema = { ...file, anyOf: [{ required: ['path'] }, { properties: { size: { type: 'number' } } }] }
  t.ok(await fitsIn(schema, { path: 'x', size: 1 }))
  t.notOk(await fitsIn(schema, { path: 'x', size: 1, note: 'secret' }))
})

t.test('mutually exclusive branches stay exclusive with fewer members', async (t) => {
  const wide = { ...file, properties: { ...file.properties, size: { type: 'number' } } }
  const schema = inside(
    { oneOf: [{ $ref: '#/$defs/A' }, { $ref: '#/$defs/B' }] },
    { $defs: { A: file, B: wide } },
  )
  t.notOk(
    await fitsIn(schema, { a: { path: 'x', size: 1 } }),
    'the approved schema rejects it, because both branches match',
  )
})

t.test('the error names a member that does not fit', async (t) => {
  t.match(await violations(file, smuggled), [/unevaluated properties \("note"\)/])
})

t.test('an object that was approved as open stays open', async (t) => {
  t.ok(await fitsIn(inside({ type: 'object' }), { a: { anything: 1 } }))
  t.ok(await fitsIn({ ...file, additionalProperties: true }, smuggled))
})

t.test('a tool whose schema cannot be closed correctly cannot be called', async (t) => {
  let deep: object = file
  for (let i = 0; i < 40; i++) deep = inside(deep)
  const refused: readonly object[] = [
    inside({ allOf: [file] }),
    { allOf: [file] },
    inside({ $ref: '#/$defs/File', properties: { note: {} } }, definitions),
    inside({ $ref: '#/not' }, { not: file }),
    { $dynamicRef: '#/$defs/File', ...definitions },
    inside({ $id: 'https://example.com/a', ...file }),
    deep,
  ]
  for (const schema of refused) t.equal(check(schema), undefined, JSON.stringify(schema).slice(0, 80))
})

t.test('members required by a draft-07 dependency are required', async (t) => {
  const schema = { type: 'object', properties: { x: {}, y: {} }, dependencies: { x: ['y'] } }
  t.ok(await fitsIn(schema, { x: 1, y: 1 }))
  t.notOk(await fitsIn(schema, { x: 1 }))
})

t.test('arguments do not fit if their check exceeds its limit', async (t) => {
  const lines: Record<string, unknown>[] = []
  const log = makeLog({ destination: { write: (line) => void lines.push(JSON.parse(line)) } })
  t.same(await violations(file, fits, matcher(t, { taskWork: 1 }, {}, log)), [
    'the check exceeded the work limit',
  ])
  t.same(await violations(file, fits, matcher(t, { taskMs: 0 }, {}, log)), ['the check failed'])
  const subject = { backend: 'files', tool: 'read' }
  t.match(lines, [
    { level: 'warn', ...subject },
    { level: 'error', ...subject, reason: 'time limit exceeded' },
  ])
  const crowded = matcher(t, {}, { maxWorkers: 1, maxPerCaller: 1, maxWaiting: 0 })
  const [first, second] = await Promise.allSettled([
    violations(file, fits, crowded),
    violations(file, fits, crowded),
  ])
  t.match(first, { status: 'fulfilled', value: [] })
  t.match(second, { status: 'rejected', reason: { code: 'RATE_LIMITED' } })
})
