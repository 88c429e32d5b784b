/** Tests the input of `gatehouse dev`, at the start and as an edit: each situation has its own message. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { group, manifest, server, startDev, virtualServer } from '../../helpers/dev-rig.ts'
import { descendantsOf, runGatehouse } from '../../helpers/gatehouse.ts'

const program = 'node test/helpers/clients/argv-server.ts'
const stdio = {
  transport: 'stdio',
  podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['x'] }] } },
}
const secretEnv = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'nowhere', key: 'k' } } }]

interface Situation {
  readonly what: string
  readonly input: string
  readonly code: number
  readonly says: RegExp
}

const refused: readonly Situation[] = [
  { what: 'a kind that does not exist', input: manifest('MCPSrever', 'a', {}), code: 1, says: /MCPSrever/ },
  { what: 'incomplete YAML', input: 'kind: [', code: 2, says: /m\.yaml/ },
  { what: 'an empty file', input: '', code: 2, says: /contains no documents/ },
  {
    what: 'YAML of another API group',
    input: JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } }),
    code: 2,
    says: /no gatehouse\.dev resources found/,
  },
  {
    what: 'the client configuration',
    input: JSON.stringify({ mcpServers: { a: { command: 'x' } } }),
    code: 2,
    says: /gatehouse (?:import|run --from)/,
  },
  {
    what: 'an invalid field',
    input: server('a', 'x', { transport: 'studio' }),
    code: 1,
    says: /m\.yaml:\d+: MCPServer\/a: spec\.transport/,
  },
  {
    what: 'two resources with the same name',
    input: [group(), group()].join('\n---\n'),
    code: 1,
    says: /MCPGroup\/g: metadata\.name: is already used/,
  },
]

for (const { what, input, code, says } of refused) {
  await t.test(`dev: exits with code ${code} on ${what}`, async (t) => {
    const folder = t.testdir({ 'm.yaml': input })
    const ended = await runGatehouse(['dev', '-f', join(folder, 'm.yaml')])
    t.equal(ended.code, code, ended.stderr)
    t.match(ended.stderr, says)
  })
}

await t.test('dev: reports why a server cannot run here, and each kind of edit', async (t) => {
  const { dev, folder, write } = await startDev(t, [
    group(),
    manifest('MCPServer', 'bare', { image: 'x', transport: 'streamable-http', mcpPort: 1 }),
    server('shell', 'a | b'),
    server('open', `tool 'x`),
    server('needy', program, {
      podTemplateSpec: { spec: { containers: [{ name: 'mcp', env: secretEnv }] } },
    }),
  ])
  const rows = [
    /^MCPServer bare: not run: add the annotation gatehouse\.dev\/local-command/m,
    /^MCPServer shell: not run: gatehouse\.dev\/local-command: "\|" needs a shell/m,
    /^MCPServer open: not run: gatehouse\.dev\/local-command: the quote ' is not closed/m,
    /^MCPServer needy: (?:not run|failed): .*Secret "?nowhere"?/m,
  ]
  for (const row of rows) t.ok(await dev.waitFor(row), String(row))
  const path = join(folder, 'manifests.yaml')
  for (const [edit, says] of [
    ['kind: [', /the latest edit was not applied:\n.*manifests\.yaml/],
    [manifest('MCPSrever', 'a', {}), /the latest edit was not applied:\n.*MCPSrever/],
  ] as const) {
    writeFileSync(path, edit)
    await dev.waitFor(says)
  }
  write(group())
  await dev.waitFor(/^the problems are fixed; edits take effect again$/m)
  await dev.waitFor(/^MCPServer needy removed$/m)
})

await t.test('dev: replaces a killed process of a stdio server, and reports it', async (t) => {
  const { dev } = await startDev(t, [group(), server('talk', program, stdio), virtualServer()])
  await dev.waitFor(/^v: backends: talk$/m)
  const servers = descendantsOf(dev.child.pid ?? 0).filter((pid) => commandOf(pid).includes('argv-server'))
  t.ok(servers.length > 0)
  for (const pid of servers) process.kill(pid, 'SIGKILL')
  await dev.waitFor(/^MCPServer talk: .*ended by SIGKILL/m)
  await dev.waitFor(/^MCPServer talk: ready on \S+; \d+ restarts?, the last one after: ended by SIGKILL$/m)
})

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
