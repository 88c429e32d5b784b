/** `gatehouse add` with a local registry: plan, files, lock, `--update`, `--check`, and a mirror file. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import {
  memoryVersion,
  npmServer,
  remoteServer,
  startRegistry,
  type TestRegistry,
} from '../../helpers/registry/registry.ts'

t.setTimeout(240_000)

const name = 'io.github.test/memory'
const token = { name: 'API_TOKEN', isRequired: true, isSecret: true, description: 'Token of the service' }
const canary = 'canary-value-of-a-secret'

async function rig(t: Test): Promise<{
  registry: TestRegistry
  folder: string
  add: (...args: string[]) => ReturnType<typeof runGatehouse>
}> {
  const registry = await startRegistry(t)
  const folder = join(t.testdir({}), 'mcp')
  return {
    registry,
    folder,
    add: (...args) => runGatehouse(['add', ...args]),
  }
}

function lockOf(folder: string): { namespaces: Record<string, string>; servers: Record<string, never> } {
  return JSON.parse(readFileSync(join(folder, 'registry.lock'), 'utf8'))
}

await t.test('add: shows the plan, writes a valid manifest, a private Secret and a lock', async (t) => {
  const { registry, folder, add } = await rig(t)
  registry.publish(npmServer(name, '1.0.0', { environmentVariables: [token] }))
  const from = ['--registry', registry.url]

  const plan = await add(name, ...from)
  t.equal(plan.code, 0, plan.stderr)
  t.match(plan.stdout, `Runs: npx @modelcontextprotocol/server-memory@${memoryVersion}   as MCPServer/memory`)
  t.match(plan.stdout, /Secrets:\n {2}API_TOKEN: Token of the service/)
  t.match(plan.stdout, /^\+ {2}transport: stdio$/m, 'a diff')
  t.match(plan.stdout, /Nothing was written/)
  t.notOk(existsSync(folder))
  t.match((await add(name, ...from, '-o', folder, '--dry-run')).stdout, /Nothing was written/)
  t.notOk(existsSync(folder))

  const written = await add(name, ...from, '-o', folder)
  t.equal(written.code, 0, written.stderr)
  t.match(written.stdout, /Written to .*: memory\.yaml, memory-secrets\.yaml, group\.yaml, registry\.lock/)
  t.match(written.stderr, /Secrets without a value: memory-secrets\/API_TOKEN/)
  t.match(parse(readFileSync(join(folder, 'memory.yaml'), 'utf8')), {
    kind: 'MCPServer',
    metadata: { annotations: { 'gatehouse.dev/registry-server': `${name}@1.0.0` } },
    spec: {
      args: ['-y', `@modelcontextprotocol/server-memory@${memoryVersion}`],
      secrets: [{ name: 'memory-secrets', key: 'API_TOKEN' }],
    },
  })
  t.equal(statSync(join(folder, 'memory-secrets.yaml')).mode & 0o777, 0o600)
  t.match(readFileSync(join(folder, '.gitignore'), 'utf8'), /^\/memory-secrets\.yaml$/m)
  t.match(lockOf(folder), {
    namespaces: { 'io.github.test': registry.url },
    servers: {
      [name]: { version: '1.0.0', registry: registry.url, source: 'npm', entrySha256: /^[a-f0-9]{64}$/ },
    },
  })
  t.match(await runGatehouse(['validate', '-f', folder]), { code: 0 })
  t.match((await add(name, ...from, '-o', folder)).stdout, /is up to date/, 'the same again changes nothing')
})

await t.test(
  'add: keeps entered secrets, joins the existing group, and replaces edits only with --force',
  async (t) => {
    const { registry, folder, add } = await rig(t)
    registry.publish(npmServer(name, '1.0.0', { environmentVariables: [token] }))
    const into = ['--registry', registry.url, '-o', folder]
    await add(name, ...into, '--group', 'tools')
    const secrets = join(folder, 'memory-secrets.yaml')
    writeFileSync(secrets, readFileSync(secrets, 'utf8').replace('API_TOKEN: ""', `API_TOKEN: ${canary}`))
    const manifest = join(folder, 'memory.yaml')
    const edited = `${readFileSync(manifest, 'utf8')}# edited\n`
    writeFileSync(manifest, edited)

    const refused = await add(name, ...into)
    t.match(refused, {
      code: 2,
      stderr: /would replace memory\.yaml with different contents; use --force/,
    })
    t.equal(readFileSync(manifest, 'utf8'), edited)
    registry.publish(npmServer(name, '2.0.0', { environmentVariables: [token] }))
    t.match(
      await add('--update', ...into),
      { code: 2, stderr: /would replace memory\.yaml/ },
      'an edit survives',
    )
    t.equal(readFileSync(manifest, 'utf8'), edited)
    const forced = await add(name, ...into, '--force')
    t.equal(forced.code, 0, forced.stderr)
    t.notMatch(readFileSync(manifest, 'utf8'), /# edited/)
    t.match(readFileSync(secrets, 'utf8'), canary)
    t.notMatch(forced.stdout + forced.stderr, canary, 'no output contains a secret')

    registry.publish(remoteServer('io.github.test/docs', 'https://docs.example.com/mcp'))
    t.equal((await add('io.github.test/docs', ...into)).code, 0)
    const docs = parse(readFileSync(join(folder, 'docs.yaml'), 'utf8'))
    t.match(docs, {
      kind: 'MCPServerEntry',
      spec: { remoteUrl: 'https://docs.example.com/mcp', groupRef: { name: 'tools' } },
    })
    t.equal(parseAllDocuments(readFileSync(join(folder, 'group.yaml'), 'utf8')).length, 2)
    registry.publish(remoteServer('io.github.test.sub/docs', 'https://other.example.com/mcp'))
    const taken = await add('io.github.test.sub/docs', ...into)
    t.match(taken, { code: 2, stderr: /already defines docs; use --name|would replace docs\.yaml/ })
  },
)

await t.test(
  'add --update: moves to the latest version and shows the diff; --check writes nothing',
  async (t) => {
    const { registry, folder, add } = await rig(t)
    const set = { name: 'MEMORY_FILE_PATH', isRequired: true }
    registry.publish(npmServer(name, '1.0.0', { environmentVariables: [set] }))
    const into = ['--registry', registry.url, '-o', folder]
    t.equal((await add(name, ...into, '--set', 'MEMORY_FILE_PATH=/tmp/memory.json')).code, 0)
    t.match(await add('--check', '-o', folder), { code: 0, stdout: `${name}@1.0.0: unchanged` })
    t.match(await add('--update', '-o', folder), { code: 0, stdout: /1\.0\.0 is the latest version/ })

    registry.publish(
      npmServer(name, '1.1.0', {
        environmentVariables: [set],
        packageArguments: [{ type: 'positional', value: 'serve' }],
      }),
    )
    t.match(await add('--check', '-o', folder), { code: 0 }, 'the locked version is still the same')
    const before = readFileSync(join(folder, 'registry.lock'), 'utf8')
    const shown = await add('--update', '--dry-run', '-o', folder)
    t.match(shown, { code: 0, stdout: /1\.0\.0 → 1\.1\.0/ })
    t.match(shown.stdout, /^\+ {4}- serve$/m)
    t.equal(readFileSync(join(folder, 'registry.lock'), 'utf8'), before)
    const updated = await add('--update', name, '-o', folder, '--format', 'json')
    t.equal(updated.code, 0, updated.stderr)
    t.match(JSON.parse(updated.stdout), {
      servers: [{ name, version: '1.1.0', from: '1.0.0', written: ['memory.yaml', 'registry.lock'] }],
    })
    t.match(
      readFileSync(join(folder, 'memory.yaml'), 'utf8'),
      /value: \/tmp\/memory\.json/,
      'keeps the inputs',
    )

    registry.publish(npmServer(name, '1.1.0', { environmentVariables: [set] }))
    t.match(await add('--check', '-o', folder), { code: 1, stdout: /entry has changed since it was locked/ })
    t.match(await add(name, '-o', folder, '--force'), {
      code: 1,
      stderr: /entry has changed since it was locked/,
    })
    t.match(await add('--update', '-o', folder), { code: 1, stderr: /entry has changed since it was locked/ })
    registry.publish(npmServer(name, '1.1.0', { environmentVariables: [set] }), 'deleted')
    t.match(await add('--check', '-o', folder, '--format', 'json'), {
      code: 1,
      stdout: /marks this version as deleted/,
    })
  },
)

await t.test('add --update: an older latest version is rejected, unless it is named', async (t) => {
  const { registry, folder, add } = await rig(t)
  const locked = () => lockOf(folder).servers[name]
  registry.publish(npmServer(name, '1.10.0'))
  t.equal((await add(name, '--registry', registry.url, '-o', folder)).code, 0)
  for (const version of ['1.9.0', 'preview']) {
    registry.publish(npmServer(name, version))
    for (const args of [['--update'], ['--update', `${name}@latest`], [`${name}@latest`, '--force']]) {
      const { code, stderr } = await add(...args, '-o', folder)
      t.equal(code, 1, args.join(' '))
      t.match(
        stderr,
        `latest version, ${version}, is not newer than the locked version, 1.10.0; to accept it, use --update ${name}@${version}`,
      )
    }
    t.match(locked(), { version: '1.10.0' })
  }
  t.match(await add('--check', `${name}@1.9.0`, '-o', folder), { code: 2, stderr: /remove the version/ })
  t.match(await add('--update', `${name}@1.9.0`, '-o', folder), { code: 0, stdout: /1\.10\.0 → 1\.9\.0/ })
  t.match(locked(), { version: '1.9.0' })
  t.match(await add('--update', `${name}@1.9.0`, '-o', folder), {
    code: 0,
    stdout: /1\.9\.0 is already locked/,
  })
})

await t.test('add: a mirror file works offline, and an absent entry is reported by name', async (t) => {
  const { registry, folder, add } = await rig(t)
  registry.publish(npmServer(name, '1.0.0'))
  const mirror = join(t.testdir({}), 'mirror.json')
  writeFileSync(mirror, JSON.stringify(registry.list()))
  const offline = ['--registry-file', mirror, '--offline', '-o', folder]
  const seen = registry.seen.length
  t.match(await add(name, ...offline), { code: 0 })
  t.match(await add('--check', ...offline), { code: 0 })
  t.match(await add('io.github.test/absent', ...offline), {
    code: 1,
    stderr: /io\.github\.test\/absent: not in .*mirror\.json, and --offline is set/,
  })
  t.equal(registry.seen.length, seen, 'no request')
  t.match(await add(name, '--offline'), { code: 2, stderr: /--offline: requires --registry-file/ })
  writeFileSync(mirror, '{"servers": 1}')
  t.match(await add(name, ...offline), { code: 2, stderr: /must contain a list of servers/ })
})

await t.test('add: a namespace stays with its registry', async (t) => {
  const { registry, folder, add } = await rig(t)
  const other = await startRegistry(t)
  registry.publish(npmServer('com.acme/crm', '1.0.0'))
  other.publish(npmServer('com.acme.tools/mail', '9.0.0'))
  t.equal((await add('com.acme/crm', '--registry', registry.url, '-o', folder)).code, 0)
  t.match(await add('com.acme.tools/mail', '--registry', other.url, '-o', folder), {
    code: 2,
    stderr: /--registry: com\.acme\.tools is bound to http:\/\/127\.0\.0\.1:\d+ in registry\.lock/,
  })
  t.match(await add('com.acme.tools/mail', '-o', folder), { code: 1, stderr: /not found in/ })
  t.equal(other.seen.length, 0, 'never contacts a second registry')
})

await t.test(
  'add: reports all missing, invalid and unknown inputs at once, and asks for no secret',
  async (t) => {
    const { registry, add } = await rig(t)
    registry.publish(
      npmServer(name, '1.0.0', {
        environmentVariables: [
          token,
          { name: 'REGION', isRequired: true, description: 'Region of the service' },
          { name: 'MODE', choices: ['fast', 'safe'] },
          { name: 'COUNT', format: 'number' },
        ],
      }),
    )
    const { code, stderr } = await add(
      ...[name, '--registry', registry.url, '--set', 'MODE=slow', '--set', 'COUNT=many'],
      ...['--set', `API_TOKEN=${canary}`, '--set', 'NOPE=1'],
    )
    t.equal(code, 2)
    for (const line of [
      /REGION: is required; use --set REGION=VALUE \(Region of the service\)/,
      /MODE: must be one of: fast, safe/,
      /COUNT: must be a number/,
      /API_TOKEN: is a secret/,
      /NOPE: io\.github\.test\/memory has no such input; its inputs are: API_TOKEN, REGION, MODE, COUNT/,
    ])
      t.match(stderr, line)
    t.notMatch(stderr, canary)
  },
)

await t.test('add: every command in the guide works', async (t) => {
  const { registry } = await rig(t)
  registry.publish(npmServer('com.acme/notes', '1.0.0', { environmentVariables: [token] }))
  registry.publish({
    ...npmServer('com.acme/crm', '1.2.0', { environmentVariables: [{ name: 'region', isRequired: true }] }),
  })
  const cwd = t.testdir({ 'mirror.json': JSON.stringify(registry.list()) })
  const guide = readFileSync('docs/guides/registry.md', 'utf8')
  const blocks = [...guide.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block)
  const commands = blocks.join('').trim().split('\n')
  t.ok(commands.length >= 8)
  for (const command of commands) {
    const [word, ...args] = command
      .replaceAll('https://registry.acme.example', registry.url)
      .replace(/ mcp\//, ` ${cwd}/mcp`)
      .replace('mirror.json', `${cwd}/mirror.json`)
      .split(' ')
    t.equal(word, 'gatehouse')
    const { code, stderr } = await runGatehouse(args)
    t.equal(code, 0, `${command}: ${stderr}`)
  }
})

await t.test('add: a lock that another program changed meanwhile is not overwritten', async (t) => {
  const folder = t.testdir({})
  const registry = await startLoopback(() => {
    // Another program adds a server while this one waits for the registry.
    writeFileSync(
      join(folder, 'registry.lock'),
      '{"version":1,"namespaces":{"com.acme":"https://a.example"},"servers":{}}',
    )
    return { body: { server: npmServer(name, '1.0.0') } }
  })
  t.teardown(() => registry.close())
  const result = await runGatehouse(['add', name, '--registry', registry.url, '-o', folder])
  t.match(result, {
    code: 2,
    stderr: /registry\.lock: was changed by another program; run the command again/,
  })
  t.match(lockOf(folder).namespaces, { 'com.acme': 'https://a.example' })
  t.notOk(existsSync(join(folder, 'memory.yaml')))
})
