/** Integers that a double would round are read exactly, or rejected with their location and an alternative. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { makeHooks } from '../../../hooks/index.ts'
import { evaluate, type HookCall } from '../../../hooks/server/evaluate.ts'
import { readManifests } from '../../../runtime/toolkit/manifests/read.ts'
import { valueFor } from '../../../runtime/tools/shell/form.ts'
import { parseVmcpConfig, readYaml } from '../../../runtime/config/index.ts'
import { explainDecision } from '../../../runtime/policy/index.ts'
import { canonicalJson, validateManifest } from '../../../schemas/index.ts'
import { program as gatehouse } from '../../helpers/gatehouse.ts'
import { rig, toolEntry, workflow } from '../../helpers/vmcp/workflow-rig.ts'
import { testSettings } from '../../hooks/world.ts'
import { jsonObject } from '../../../runtime/toolkit/terminal/options.ts'

const long = '9007199254740993'
const message = `the number ${long} would lose digits; numbers are exact up to 9007199254740991. Write it in quotes if text is accepted here`

/** Returns a composite tool as JSON text; `arg` is the JSON of one argument. */
const definition = (arg: string) =>
  `{"apiVersion":"gatehouse.dev/v1beta1","kind":"VirtualMCPCompositeToolDefinition","metadata":{"name":"w","namespace":"n","uid":"1"},
"spec":{"name":"w","description":"d","steps":[{"id":"a","tool":"x.a",
"arguments":{"id":${arg}}}]}}`
const path = 'spec.steps[0].arguments.id'

await t.test('manifests in YAML and JSON reject a number that would be rounded', (t) => {
  const yaml = (number: string) => definition(number).replaceAll('"id":', '"id": ')
  for (const number of [
    long,
    `+${long}`,
    '0x20000000000001',
    '0o400000000000000001',
    '9_007_199_254_740_993',
  ])
    t.strictSame(
      validateManifest(readYaml(yaml(number)).documents[0]?.value),
      [{ path, message }],
      `YAML ${number}`,
    )
  for (const number of [`"${long}"`, '9007199254740991', '9007199254740994', '1e21', '0.12345678901234567'])
    t.strictSame(validateManifest(readYaml(yaml(number)).documents[0]?.value), [], number)
  const folder = t.testdir({ 'w.json': definition(long), 'w.yaml': definition(`[1, -${long}]`) })
  for (const [file, at] of [
    ['w.json', `3: VirtualMCPCompositeToolDefinition/w: ${path}: the number ${long}`],
    ['w.yaml', `3: VirtualMCPCompositeToolDefinition/w: ${path}[1]: the number -${long}`],
  ] as const) {
    const ended = spawnSync(process.execPath, [gatehouse, 'validate', '-f', join(folder, file)], {
      encoding: 'utf8',
    })
    t.match(ended, { status: 1, stderr: `${join(folder, file)}:${at} would lose digits` })
  }
  t.end()
})

await t.test('a document of another API group keeps all digits and rejects nothing', (t) => {
  const text = `{"apiVersion":"example.com/v1","kind":"X","metadata":{"name":"x"},"spec":{"maximum":${long}}}`
  const [manifest] = readManifests([join(t.testdir({ 'x.yaml': text }), 'x.yaml')], () => '')
  t.match(JSON.stringify(manifest?.doc), `"maximum":${long}`)
  t.match(canonicalJson(manifest?.doc), `"maximum":${long}`)
  t.end()
})

await t.test('a key that would be rounded is rejected in every YAML file', (t) => {
  t.match(readYaml(`a: 1\n${long}: b`).violations, [
    { line: 2, message: `the key ${long} would lose digits; put it in quotes` },
  ])
  t.end()
})

await t.test('a configuration file rejects a number that would be rounded', (t) => {
  t.throws(
    () =>
      parseVmcpConfig(
        `name: x\ncompositeTools:\n- name: w\n  description: d\n  steps: [{id: a, tool: x.a, arguments: {id: ${long}}}]\n`,
      ),
    { code: 'INVALID_CONFIG', message: `compositeTools[0].steps[0].arguments.id: ${message}` },
  )
  t.end()
})

await t.test('admission and sync reject a number that would be rounded', (t) => {
  const hooks = makeHooks(testSettings)
  const call = (what: HookCall, text: string) => JSON.parse(evaluate(hooks, what, text).text)
  const review = call(
    { hook: 'validate' },
    `{"kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","object":${definition(long)}}}`,
  )
  t.match(review.response, { allowed: false, status: { message: `${path}: ${message}` } })
  const synced = call(
    { hook: 'sync', plural: 'virtualmcpcompositetooldefinitions', events: false },
    `{"parent":${definition(long)},"children":{},"related":{}}`,
  )
  t.match(synced.status, { validationStatus: 'Invalid', validationErrors: [`${path}: ${message}`] })
  t.end()
})

await t.test('a workflow sends the digits of a quoted literal', async (t) => {
  const inputSchema = { properties: { id: { type: 'integer' } } }
  const definition = workflow({
    steps: [{ id: 'a', tool: 'x.a', arguments: { id: long, any: `{{${long}}}` } }],
  })
  const r = await rig(definition, { tools: [toolEntry('x_a', { inputSchema })] })
  await r.run()
  t.equal(r.calls[0]?.raw, `{"any":${long},"id":${long}}`)
})

await t.test('policies compare entities, claims and arguments digit by digit', async (t) => {
  const decide = async (number: string) => {
    const uid = { type: 'BackendTool', id: 'b/t' }
    const attrs = { owner: 0 }
    const entities = JSON.stringify([{ uid, attrs, parents: [] }]).replace(':0', `:${number}`)
    const { decision } = await explainDecision(
      {
        serverName: 's',
        groupEntityType: 'G',
        entitiesJson: entities,
        policies: [
          `permit(principal, action, resource) when { BackendTool::"b/t".owner == ${long} && principal.claim_n == ${long} && context.arg_id == ${long} };`,
        ],
      },
      {
        action: 'call_tool',
        id: 'x',
        origin: { backend: 'b', original: 't' },
        claims: jsonObject(`{"sub":"ada","n":${number}}`),
        arguments: jsonObject(`{"id":${number}}`),
      },
    )
    return decision
  }
  t.equal(await decide(long), 'permitted')
  t.equal(await decide('9007199254740991'), 'unmentioned')
})

await t.test('a form rejects a number that it would round', (t) => {
  const field = {
    name: 'n',
    title: 'n',
    description: undefined,
    kind: 'integer',
    required: true,
    byDefault: undefined,
    options: [],
    min: undefined,
    max: undefined,
  } as const
  t.match(valueFor(field, long), { problem: /^the number 9007199254740993 would lose digits/ })
  t.strictSame(valueFor(field, '9007199254740991'), { value: 9007199254740991 })
  t.end()
})
