/** Cerbos, a real decision point that speaks AuthZEN, decides about calls and lists of a virtual server. */
import t from 'tap'
import { stringify } from 'yaml'
import { startCerbos, withoutCerbos } from '../helpers/decisions/cerbos.ts'
import { eras, startDecisionRig, toolsIn } from '../helpers/decisions/decision-rig.ts'

const rule = (action: string, expression: string) => ({
  actions: [action],
  effect: 'EFFECT_ALLOW',
  roles: ['*'],
  condition: { match: { expr: expression } },
})
const policy = (resource: string, ...rules: object[]) =>
  stringify({
    apiVersion: 'api.cerbos.dev/v1',
    resourcePolicy: { resource, version: 'default', rules },
  })

t.test('Cerbos decides about calls and lists', { skip: withoutCerbos() }, async (t) => {
  const cerbos = await startCerbos({
    'tool.yaml': policy(
      'tool',
      rule('tools/call', 'R.attr.backend == "fixture" && R.attr.original == "echo"'),
      rule('tools/call', 'R.attr.name == "test_simple_text" && "dev" in P.attr.groups'),
    ),
    'resource.yaml': policy('resource', rule('resources/read', 'R.id.endsWith("/test://static-text")')),
  })
  t.teardown(() => cerbos.close())
  const settings = { http: { url: cerbos.url } }
  const rig = await startDecisionRig(t, settings, 'authzenv1')
  const names = (list: readonly string[]) => [...list].sort()
  for (const era of eras) {
    const guest = await rig.as(era, 'guest', { groups: [] })
    t.same(toolsIn(await guest('tools/list')), ['echo'])
    t.match((await guest('tools/call', { name: 'echo', arguments: { text: 'hello' } })).text, 'hello')
    const refused = await guest('tools/call', { name: 'test_simple_text', arguments: {} })
    t.match(refused.response?.error, { code: 403 })
    const developer = await rig.as(era, 'ada', { groups: ['dev'] })
    t.same(names(toolsIn(await developer('tools/list'))), ['echo', 'test_simple_text'])
    t.match((await developer('tools/call', { name: 'test_simple_text', arguments: {} })).response?.result, {
      content: [{}],
    })
    t.match((await developer('resources/read', { uri: 'test://static-text' })).response?.result, {
      contents: [{}],
    })
    t.match((await developer('prompts/list')).response?.result, { prompts: [] })
  }
  t.match(await rig.metrics(), /decision_point_answers_total\{[^}]*outcome="allow"/)
  t.notMatch(await rig.metrics(), /decision_point_answers_total\{[^}]*outcome="(?:malformed|status)"/)
})
