/** Tests what `gatehouse client` shows, where it writes, and which input it rejects, with a user's command lines. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeClientHome } from '../../helpers/clients/client-home.ts'
import { untyped } from '../../helpers/untyped.ts'
import { program } from '../../helpers/gatehouse.ts'

t.setTimeout(120_000)

const { home, clients: all, env, fileOf, changed, gatehouse } = makeClientHome(t)

await t.test('client add: a dry run and a snippet change no file and show no secret', async (t) => {
  const dry = await gatehouse('client', 'add', ...all, '--dry-run')
  t.equal(dry.code, 0, dry.stderr)
  t.match(dry.stdout, /\+ {4}"gatehouse": \{/)
  const print = await gatehouse('client', 'add', ...all, '--print')
  t.match(
    print.stdout,
    /claude mcp add --transport http --scope user gatehouse http:\/\/127\.0\.0\.1:4483\/mcp/,
  )
  t.match(print.stdout, /cursor:\/\/anysphere\.cursor-deeplink\/mcp\/install\?name=gatehouse&config=/)
  t.notMatch(dry.stdout + dry.stderr + print.stdout, /canary|ghp_/)
  t.strictSame(changed(), [])
})

await t.test(
  'client add: writes into a project, and warns when another file of the client takes precedence',
  async (t) => {
    const project = join(home, 'project')
    mkdirSync(join(project, '.cursor'), { recursive: true })
    writeFileSync(
      join(project, '.cursor/mcp.json'),
      '{"mcpServers": {"gatehouse": {"url": "https://theirs.example"}}}',
    )
    const inProject = (...args: string[]) => {
      return spawnSync(process.execPath, [program, 'client', ...args], {
        cwd: project,
        env,
        encoding: 'utf8',
      })
    }
    t.equal(inProject('add', 'cursor').status, 0)
    t.match(
      inProject('status', 'cursor').stdout,
      /shadowed .*\n.*has another entry with this name, which takes precedence/,
    )
    t.equal(inProject('add', 'gemini', '--scope', 'project').status, 0)
    t.match(JSON.parse(readFileSync(join(project, '.gemini/settings.json'), 'utf8')), {
      mcpServers: { gatehouse: {} },
    })
    t.equal(inProject('add', 'claude-code', '--scope', 'local').status, 0)
    t.match(untyped(JSON.parse(readFileSync(join(home, '.claude.json'), 'utf8')))['projects'][project], {
      mcpServers: { gatehouse: { type: 'http' } },
    })
    inProject('remove', 'claude-code', '--scope', 'local')
    inProject('remove', 'cursor')
    t.strictSame(changed(), [])
  },
)

await t.test(
  'client: reports an error for its client only, and continues with the other clients',
  async (t) => {
    const file = fileOf('gemini')
    writeFileSync(file, '{"mcpServers": {')
    const { code, stderr, stdout } = await gatehouse('client', 'add', 'gemini', 'junie', 'roo')
    t.equal(code, 1)
    t.match(stderr, /Gemini CLI: .*settings\.json:1:\d+: not valid JSON/)
    t.match(stderr, /Roo Code: Roo Code cannot be changed/)
    t.match(stdout, /JetBrains Junie: "gatehouse" connects to/)
    t.equal(readFileSync(file, 'utf8'), '{"mcpServers": {', 'untouched')
    const status = await gatehouse('client', 'status')
    t.equal(status.code, 2)
    t.match(status.stdout, /gemini +user +unreadable/)
    const unknown = await gatehouse('client', 'add', 'cusror')
    t.equal(unknown.code, 2)
    t.match(unknown.stderr, /cusror: no such client; did you mean cursor\?/)
    rmSync(join(home, '.junie'), { recursive: true })
    const absent = await gatehouse('client', 'add', 'junie')
    t.match(
      absent.stderr,
      /folder ~\/\.junie\/mcp does not exist: is JetBrains Junie installed\? Use --create/,
    )
  },
)

await t.test('client status: shows only the host of an entry that Gatehouse did not write', async (t) => {
  const file = fileOf('cursor')
  const before = readFileSync(file)
  writeFileSync(
    file,
    '{"mcpServers": {"gatehouse": {"url": "https://u:canary@mcp.example/s/canary/mcp?key=canary"}}}',
  )
  for (const output of ['text', 'json']) {
    const { stdout } = await gatehouse('client', 'status', 'cursor', '-o', output)
    t.match(stdout, 'differs')
    t.match(stdout, 'https://mcp.example')
    t.notMatch(stdout, 'canary')
  }
  writeFileSync(file, before)
})

await t.test(
  'client status: shows one row in the home folder, where the project’s file is the user’s file',
  (t) => {
    const { stdout } = spawnSync(process.execPath, [program, 'client', 'status', 'cursor', '-o', 'json'], {
      cwd: home,
      env,
      encoding: 'utf8',
    })
    t.match(JSON.parse(stdout), [{ scope: 'user' }])
    t.equal(JSON.parse(stdout).length, 1)
    t.end()
  },
)

await t.test('client add: rejects an address that contains a secret, and a missing token file', async (t) => {
  const cases = [
    [['--url', 'https://h.example/mcp?token=canary'], /--url: must not contain a secret/],
    [['--bearer-file', '/nonexistent/token'], /--bearer-file: \/nonexistent\/token does not exist/],
  ] as const
  for (const [args, message] of cases) {
    const { code, stderr } = await gatehouse('client', 'add', 'cursor', ...args)
    t.equal(code, 2)
    t.match(stderr, message)
    t.notMatch(stderr, 'canary')
  }
})

await t.test(
  'client remove and undo: a dry run writes no file, a changed entry requires --replace',
  async (t) => {
    const file = fileOf('cursor')
    const before = readFileSync(file)
    const there = (name: string) => readFileSync(file, 'utf8').includes(`"${name}": {`)
    await gatehouse('client', 'add', 'cursor', '--name', 'team')
    const added = readFileSync(file)
    for (const verb of ['remove', 'undo']) {
      const dry = await gatehouse('client', verb, 'cursor', '--name', 'team', '--dry-run')
      t.match(dry, { code: 0, stdout: /Cursor: would change ~\/\.cursor\/mcp\.json\n[^]*"team"/ }, verb)
      t.ok(readFileSync(file).equals(added), verb)
    }
    const other = await gatehouse('client', 'remove', 'cursor')
    t.match(other, { code: 0, stdout: /Cursor: nothing to do/ }, 'an entry with another name stays')
    t.ok(there('team'))
    writeFileSync(file, added.toString().replace('127.0.0.1:4483', '127.0.0.1:9999'))
    for (const verb of ['remove', 'undo']) {
      const refused = await gatehouse('client', verb, 'cursor', '--name', 'team')
      t.match(refused, { code: 1, stderr: /--replace/ }, verb)
      t.ok(there('team'), verb)
    }
    t.match(await gatehouse('client', 'remove', 'cursor', '--name', 'team', '--replace'), { code: 0 })
    t.notOk(there('team'))
    writeFileSync(file, before)
    const project = join(home, 'undone')
    mkdirSync(project)
    const words = ['undo', 'gemini', '--scope', 'project']
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [program, 'client', ...args], { cwd: project, env, encoding: 'utf8' })
    t.equal(run('add', 'gemini', '--scope', 'project').status, 0)
    t.match(run(...words), { status: 0, stdout: /Removed the file that was created for the entry/ })
    t.notOk(existsSync(join(project, '.gemini/settings.json')))
    t.match(run('remove', 'junie').stdout, 'nothing to do', 'also without a folder of the client')
  },
)
