/** `gatehouse explain` as a command: exit codes, invalid usage, and backend texts on a terminal. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startTestConsole } from '../../helpers/console/console.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'

t.setTimeout(120_000)

function files(t: Test, texts: Readonly<Record<string, string>>): (name: string) => string {
  const folder = t.testdir()
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
  return (name) => join(folder, name)
}

const config = `name: team
groupRef: g
incomingAuth:
  type: anonymous
  authz:
    type: cedar
    policies: ['permit(principal == Client::"ada", action, resource);']
    primaryUpstreamProvider: github
outgoingAuth: {source: inline}
aggregation:
  conflictResolution: prefix
  conflictResolutionConfig: {prefixFormat: '{workload}_'}
backends:
  - {name: notes, url: 'http://127.0.0.1:9/mcp', transport: streamable-http}
compositeTools:
  - {name: release, steps: [{id: a, tool: notes.echo}]}
`
const state = 'backends: {notes: {tools: [echo], health: healthy}}\n'

t.test(
  'with a file: exit codes, workflows, and substitutes for the claims of an upstream provider',
  async (t) => {
    const at = files(t, { 'vmcp.yaml': config, 'state.yaml': state })
    const explain = (...args: string[]) =>
      runGatehouse(['explain', '-f', at('vmcp.yaml'), '--state', at('state.yaml'), ...args])
    const ada = ['--claims', '{"sub":"ada"}']
    const yes = await explain(...ada, '--tool', 'notes_echo')
    t.match(yes, { code: 0, stdout: /^the item can be used\n/ })
    t.match(yes.stdout, /note policy +the policies read claims from the upstream provider github/)
    t.match(await explain('--tool', 'notes_echo'), { code: 1, stdout: /no policy permits it/ })
    t.match(await explain(...ada, '--tool', 'release'), { code: 0, stdout: /release is a workflow/ })
    t.match(await explain(...ada, '--tool', 'nothing'), { code: 1, stdout: /the item does not exist/ })
    t.match(await explain('--prompt', 'x'), {
      code: 2,
      stderr: /only a running server lists prompts and resources.*--url/,
    })
    t.match(await explain('--resource', 'x://y'), { code: 2, stderr: /only a running server lists/ })
    t.match(await explain(), { code: 2, stderr: /specify one of --tool, --prompt and --resource/ })
    t.match(await explain('--tool', 'a', '--prompt', 'b'), { code: 2 })
  },
)

t.test('with a running server: templates, and escaping of control characters in texts', async (t) => {
  const backend = await startRawBackend({
    capabilities: '{"tools":{},"resources":{},"prompts":{}}',
    responses: {
      'resources/list': () => '{"resources":[]}',
      'prompts/list': () => '{"prompts":[]}',
      'resources/templates/list': () =>
        '{"resourceTemplates":[{"name":"n","uriTemplate":"notes://{id}/text"}]}',
    },
  })
  const console = await startTestConsole({ notes: backend.url })
  t.teardown(() => Promise.all([console.close(), backend.close()]))
  const at = files(t, { token: console.token })
  const explain = (...args: string[]) =>
    runGatehouse(['explain', '--url', console.url, '--token-file', at('token'), ...args])
  const found = await explain('--resource', 'notes://17/text')
  t.match(found, {
    code: 0,
    stdout: /notes:\/\/17\/text matches the template notes:\/\/\{id\}\/text of backend notes/,
  })
  const hidden = await explain('--tool', 'no\u001b[2Jpe\u202e')
  t.equal(hidden.code, 1)
  // eslint-disable-next-line no-control-regex -- what must not be there
  t.notMatch(hidden.stdout, /[\u001b\u0007\u202e]/)
})
