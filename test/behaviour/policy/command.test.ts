/** `gatehouse policy test` and `explain` as commands, on manifests and files. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runGatehouse } from '../../helpers/gatehouse.ts'

const policies = `policies:
  - permit(principal in ServiceGroup::"ops", action, resource in Backend::"github");
  - forbid(principal, action, resource in BackendTool::"github/delete") when { context has arg_force };
  - permit(principal == Client::"never", action, resource);
`
const fixtures = `policies: policies.yaml
tests:
  - name: operators search
    claims: {sub: ada, groups: [ops]}
    call: {tool: gh_search, backend: github, original: search}
    expect: allow
    because: ["policies[0]"]
    errors: 0
  - name: a forced deletion is denied
    claims: {sub: ada, groups: [ops]}
    call: {tool: gh_delete, backend: github, original: delete, arguments: {force: true}}
    expect: deny
    because: ["policies[1]"]
  - name: the tools that another user sees
    claims: {sub: ben}
    list: {hidden: [gh_search, {prompt: hello, backend: github}]}
`

t.test('test: passes, lists unused policies, and fails with the expected decision', async (t) => {
  const folder = t.testdir({
    'policies.yaml': policies,
    'tests.yaml': fixtures,
    'wrong.yaml': fixtures.replace('expect: deny', 'expect: allow').replace('policies[0]', 'policies[2]'),
    'broken.yaml': 'tests:\n  - name: 7\n    call: {tool: a, promt: b}\n    expect: maybe\n',
  })
  const passed = await runGatehouse(['policy', 'test', '-f', join(folder, 'tests.yaml')])
  t.match(passed, { code: 0, stdout: 'no test depends on: policies[2]\n3 passed, 0 failed\n' })
  const wrong = join(folder, 'wrong.yaml')
  const failed = await runGatehouse(['policy', 'test', '-f', wrong])
  t.equal(failed.code, 1)
  t.match(
    failed.stdout,
    'call_tool gh_search: expected the determining policies to include policies[2], found policies[0]',
  )
  t.match(failed.stdout, 'call_tool gh_delete: expected allow, was deny by policies[1]')
  const json = await runGatehouse(['policy', 'test', '-f', wrong, '-o', 'json'])
  t.match(JSON.parse(json.stdout), { passed: 1, failed: 2, idle: ['policies[2]'] })
  const junit = await runGatehouse(['policy', 'test', '-f', wrong, '-o', 'junit'])
  t.match(junit.stdout, '<testsuite name="gatehouse policy test" tests="3" failures="2">')
  const broken = await runGatehouse(['policy', 'test', '-f', join(folder, 'broken.yaml')])
  t.equal(broken.code, 2)
  for (const message of [
    'broken.yaml:2: tests[0].name: must be a string',
    'broken.yaml:3: tests[0].call.promt: unknown field; expected one of tool, prompt, resource, backend, original, arguments, hints',
    'broken.yaml:4: tests[0].expect: must be allow or deny',
  ])
    t.match(broken.stderr, message)
})

t.test('a document of policies: content that would be ignored is rejected', async (t) => {
  const entities = '[{"uid":{"type":"ServiceGroup","id":"ops"},"attrs":{},"parents":[]}]'
  const rows: readonly (readonly [string, RegExp])[] = [
    [`entities_json: '${entities}'`, /p\.yaml: entities_json: unknown field; expected one of policies, /],
    [`entitiesJson: ${entities}`, /p\.yaml: entitiesJson: must be a string/],
    ['groupEntityTyp: Team', /p\.yaml: groupEntityTyp: unknown field/],
  ]
  for (const [line, stderr] of rows) {
    const folder = t.testdir({ 'p.yaml': `${policies}${line}\n` })
    t.match(await runGatehouse(['policy', 'explain', '-p', join(folder, 'p.yaml'), '--tool', 'x']), {
      code: 2,
      stderr,
    })
  }
  const folder = t.testdir({
    'p.yaml': `${policies}name: front\nentitiesJson: '${entities}'\nshadowPolicies: []\n`,
  })
  t.equal((await runGatehouse(['policy', 'explain', '-p', join(folder, 'p.yaml'), '--tool', 'x'])).code, 1)
})

t.test('standard input is read once, and by one option only', async (t) => {
  const readFrom = (path: string) => [
    'policy',
    'explain',
    '-p',
    path,
    '--claims',
    '{"sub":"ada"}',
    '--tool',
    'x',
  ]
  const folder = 'manifests/examples/authz'
  const text = readdirSync(folder)
    .filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n---\n')
  const [piped, named] = [await runGatehouse(readFrom('-'), text), await runGatehouse(readFrom(folder))]
  t.equal(piped.code, 1, piped.stderr)
  t.equal(piped.stdout, named.stdout)
  const both = await runGatehouse(['policy', 'replay', '--audit', '-', '--new', '-'], text)
  t.match(both, { code: 2, stderr: /only one of --new and --audit can read standard input/ })
  t.match(await runGatehouse(['policy', 'test', '-f', '-', '-p', folder], ''), {
    code: 2,
    stderr: /-: contains no documents/,
  })
  const tests = await runGatehouse(['policy', 'test', '-f', '-', '-p', '-'], fixtures)
  t.match(tests, { code: 2, stderr: /only one of -f and --policies can read standard input/ })
})

t.test('explain: on manifests, in text and JSON', async (t) => {
  const manifests = ['-p', 'manifests/examples/authz']
  const denied = await runGatehouse([
    'policy',
    'explain',
    ...manifests,
    '--claims',
    '{"sub":"ada"}',
    '--tool',
    'x',
  ])
  t.equal(denied.code, 1, denied.stderr)
  t.match(
    denied.stdout,
    /^denied: no policy permits it\n {2}misses {2}permit {2}policies\[1\]: principal in ServiceGroup::"employees"\n/,
  )
  const json = await runGatehouse(['policy', 'explain', ...manifests, '--tool', 'x', '-o', 'json'])
  t.match(JSON.parse(json.stdout), {
    decision: 'unmentioned',
    policies: [{ id: 'policies[1]' }, {}, { effect: 'forbid' }],
  })
  t.match(await runGatehouse(['policy', 'explain', ...manifests]), {
    code: 2,
    stderr: /specify one of --tool, --prompt and --resource/,
  })
})
