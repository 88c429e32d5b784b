/** `gatehouse add` against registries, images and files that misbehave. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommanderError } from 'commander'
import t from 'tap'
import { addAddCommand } from '../../../runtime/tools/registry/command.ts'
import { rootCommand } from '../../../runtime/toolkit/terminal/program.ts'
import { GatehouseError, hiddenInText } from '../../../schemas/index.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { startIsolatedNetwork } from '../../helpers/network/isolated-network.ts'
import { npmServer, remoteServer, startRegistry } from '../../helpers/registry/registry.ts'

t.setTimeout(240_000)

const name = 'io.github.test/memory'
const add = (...args: string[]) => runGatehouse(['add', ...args])

/** Runs the command in this process and returns the error that ends it with exit code 2. */
async function usageError(...args: readonly string[]): Promise<string> {
  const program = rootCommand('gatehouse').configureOutput({ writeErr: () => {} })
  addAddCommand(program)
  try {
    await program.parseAsync(['add', ...args], { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) return error.message
    if (error instanceof GatehouseError && error.code === 'INVALID_CONFIG') return error.message
    throw error
  }
  throw new Error(`${args.join(' ')}: no error`)
}

await t.test('add: the registry’s address and response are checked', async (t) => {
  const large = 'x'.repeat(1_100_000)
  const inner = await startLoopback(() => ({ body: { server: npmServer(name, '1.0.0') } }))
  t.teardown(() => inner.close())
  const registry = await startLoopback(({ path }) => {
    if (path.startsWith('/redirect'))
      return { status: 302, headers: { location: `${inner.url}/v0.1/servers/x` } }
    if (path.startsWith('/large')) return { body: { server: { ...npmServer(name, '1.0.0'), extra: large } } }
    if (path.startsWith('/text')) return { body: '<html>' }
    if (path.startsWith('/login')) return { status: 401 }
    return { status: 500, body: { error: 'secret-detail' } }
  })
  t.teardown(() => registry.close())
  const rows: readonly (readonly [url: string, message: RegExp])[] = [
    [`${registry.url}/redirect`, /responded with 302/],
    [`${registry.url}/large`, /the response is larger than 1048576 bytes/],
    [`${registry.url}/text`, /the response is not JSON/],
    [`${registry.url}/login`, /responded with 401; use --bearer-token-file/],
    [`${registry.url}/broken`, /responded with 500$/m],
    ['https://169.254.169.254', /refused to connect to 169\.254\.169\.254/],
    ['http://registry.example.com', /must use https/],
    ['https://user:canary@registry.example.com', /must not contain credentials/],
    ['ftp://registry.example.com', /must be an http or https URL/],
    ['http://127.0.0.1:1', /refused/],
  ]
  for (const [url, message] of rows) {
    const error = await usageError(name, '--registry', url)
    t.match(error, message, url)
    t.notMatch(error, /canary|secret-detail/)
  }
  t.equal(inner.seen.length, 0, 'a redirect to another host is not followed')
})

await t.test('add: a token is sent to the registry and appears in no output', async (t) => {
  const canary = 'canary-token-4711'
  const registry = await startLoopback(({ headers }) =>
    headers.authorization === `Bearer ${canary}`
      ? { body: { server: npmServer(name, '1.0.0') } }
      : { status: 401 },
  )
  t.teardown(() => registry.close())
  const base = t.testdir({ token: `${canary}\n` })
  const { code, stdout, stderr } = await add(
    ...[
      name,
      '--registry',
      registry.url,
      '--bearer-token-file',
      join(base, 'token'),
      '-o',
      join(base, 'mcp'),
    ],
  )
  t.equal(code, 0, stderr)
  t.notMatch(stdout + stderr + readFileSync(join(base, 'mcp/registry.lock'), 'utf8'), canary)
})

await t.test(
  'add: control and hidden characters in an entry reach neither the terminal nor the JSON',
  async (t) => {
    const registry = await startRegistry(t)
    const hostile = 'Safe\u001b[2J\u202e\u{e0041}\u200b text'
    registry.publish({
      ...npmServer(name, '1.0.0', {
        environmentVariables: [
          { name: 'TOKEN', isSecret: true, isRequired: true, description: hostile.repeat(80) },
        ],
      }),
      description: hostile,
      title: hostile,
      icons: [{ src: `${registry.url}/icon.png` }],
      websiteUrl: registry.url,
    })
    registry.publish({
      ...npmServer('io.github.test/args', '1.0.0', {
        packageArguments: [{ type: 'positional', value: hostile }],
      }),
    })
    for (const server of [name, 'io.github.test/args']) {
      for (const format of ['text', 'json']) {
        const { code, stdout, stderr } = await add(server, '--registry', registry.url, '--format', format)
        t.equal(code, 0, stderr)
        t.equal((stdout + stderr).search(hiddenInText), -1)
        t.ok(
          stdout.split('\n').every((line) => line.length < 1000),
          'descriptions are shortened',
        )
      }
    }
    t.ok(
      registry.seen.every(({ path }) => path.startsWith('/v0.1/servers/')),
      'icons and links are not fetched',
    )
  },
)

await t.test('add: deleted entries are rejected, deprecated ones are reported', async (t) => {
  const registry = await startRegistry(t)
  registry.publish(npmServer(name, '1.0.0'), 'deleted')
  const folder = join(t.testdir({}), 'mcp')
  t.match(await add(name, '--registry', registry.url, '-o', folder, '--force'), {
    code: 1,
    stderr: /memory@1\.0\.0: the registry marks this version as deleted/,
  })
  t.notOk(existsSync(folder))
  registry.publish(npmServer(name, '1.0.0'), 'deprecated')
  t.match(await add(name, '--registry', registry.url, '-o', folder), {
    code: 0,
    stdout: /marks this version as deprecated/,
  })
  t.match(await add('--check', '-o', folder), { code: 0, stderr: /Warning: .*memory@1\.0\.0 is deprecated/ })
})

await t.test('add: usage errors', async (t) => {
  const base = t.testdir({ 'registry.lock': '{"version": 2, "servers": {"a/b": {}}, "extra": 1}' })
  const rows: readonly (readonly [args: readonly string[], message: RegExp])[] = [
    [[], /NAME is missing/],
    [['weather'], /NAME: must be a namespace and a name/],
    [['a/b/c'], /NAME: must be a namespace and a name/],
    [['../../v0/x'], /NAME: must be a namespace and a name/],
    [['a/b@^1'], /VERSION: must be an exact version/],
    [['a/b@'], /VERSION: must be an exact version/],
    [['a/b', '--update', '--check', '-o', base], /--check: cannot be combined with --update/],
    [['--update'], /--update: requires -o/],
    [['a/b', '--bearer-token-file', 'x'], /--bearer-token-file: requires --registry/],
    [['--check', '-o', join(base, 'none')], /has no registry\.lock; add a server first/],
    [['a/b', '--force'], /--force: has no effect without -o/],
    [
      ['--check', '-o', base, '--dry-run', '--name', 'x'],
      /--name: has no effect with --update or --check\n.*--dry-run: has no effect/s,
    ],
    [['--update', '-o', base, '--set', 'a=1'], /--set: requires NAME/],
    [['a/b', '--set', '=x'], /Must be INPUT=VALUE/],
    [['a/b', '--source', 'nuget'], /Allowed choices are remote, npm, pypi, oci/],
    [['--check', '-o', base], /namespaces: is required/],
    [['--check', '-o', base], /servers\["a\/b"\]\.entrySha256: is required/],
    [['--check', '-o', base], /version: must be 1/],
    [['--check', '-o', base], /extra: is unknown/],
  ]
  for (const [args, message] of rows) {
    t.match(await usageError(...args), message, args.join(' '))
  }
  const registry = await startRegistry(t)
  registry.publish(npmServer(name, '1.0.0'))
  t.match(await usageError(name, '--registry', registry.url, '--name', 'A b'), /--name: must be a name/)
  t.match(await usageError(name, '--registry', registry.url, '--group', 'A b'), /--group: must be a name/)
  registry.publish(remoteServer('io.github.test/inner', 'https://10.0.0.7/mcp'))
  t.match(await add('io.github.test/inner', '--registry', registry.url), {
    code: 1,
    stderr: /private address; use --allow-private/,
  })
  t.match(await add('io.github.test/inner', '--registry', registry.url, '--allow-private'), {
    code: 0,
    stdout: /\+ {2}allowPrivateEndpoint: true/,
  })
})

await t.test('add: an image’s tag becomes a digest, with an anonymous token', async (t) => {
  const manifest = JSON.stringify({ schemaVersion: 2, manifests: [] })
  const digest = `sha256:${createHash('sha256').update(manifest).digest('hex')}`
  let declared = digest
  const registry = await startRegistry(t)
  const network = await startIsolatedNetwork({
    'registry.example': ({ path }, res) =>
      void fetch(registry.url + path).then(async (response) => res.end(await response.text())),
    'images.example': ({ path, headers }, res) => {
      if (headers.authorization !== 'Bearer canary-4711') {
        const challenge =
          'Bearer realm="https://auth.example/token",service="images",scope="repository:acme/one:pull"'
        return void res.writeHead(401, { 'www-authenticate': challenge }).end()
      }
      const isFound = path === '/v2/acme/one/manifests/1.0.0'
      res.writeHead(isFound ? 200 : 404, { 'docker-content-digest': declared }).end(isFound ? manifest : '')
    },
    'auth.example': ({ path }, res) => {
      const isRight = path === '/token?service=images&scope=repository%3Aacme%2Fone%3Apull'
      res.writeHead(isRight ? 200 : 400).end(JSON.stringify({ token: 'canary-4711' }))
    },
  })
  t.teardown(() => network.close())
  const publish = (identifier: string) =>
    registry.publish({
      name: 'io.github.test/one',
      description: 'An image',
      version: '1.0.0',
      packages: [{ registryType: 'oci', identifier, transport: { type: 'stdio' } }],
    })
  const base = t.testdir({ 'ca.pem': network.ca })
  const env = {
    ...process.env,
    HTTPS_PROXY: network.proxy.url,
    NO_PROXY: '127.0.0.1',
    GATEHOUSE_PROXY_RESOLVES_NAMES: 'true',
    NODE_EXTRA_CA_CERTS: join(base, 'ca.pem'),
  }
  const addImage = (...args: string[]) =>
    runGatehouse(['add', 'io.github.test/one', '--registry', 'https://registry.example', ...args], '', env)
  publish('images.example/acme/one:1.0.0')
  const folder = join(base, 'mcp')
  const added = await addImage('-o', folder)
  t.equal(added.code, 0, added.stderr)
  t.match(readFileSync(join(folder, 'one.yaml'), 'utf8'), `image: images.example/acme/one:1.0.0@${digest}`)
  t.match(readFileSync(join(folder, 'registry.lock'), 'utf8'), `"digest": "${digest}"`)
  t.match(await runGatehouse(['validate', '-f', folder]), { code: 0 })
  t.notMatch(added.stdout + added.stderr, 'canary-4711')

  const mirror = join(base, 'mirror.json')
  writeFileSync(mirror, JSON.stringify(registry.list()))
  t.match(await addImage('--offline', '--registry-file', mirror), {
    code: 1,
    stderr: /has no digest, and --offline is set/,
  })
  t.match(await addImage('--offline', '--registry-file', mirror, '-o', folder), {
    code: 0,
    stdout: /is up to date/,
  })
  declared = `sha256:${'0'.repeat(64)}`
  t.match(await addImage(), { code: 1, stderr: /does not match the declared digest/ })
  publish('images.example/acme/absent:1.0.0')
  t.match(await addImage(), { code: 1, stderr: /images\.example responded with 404/ })
  publish('127.0.0.1:1/acme/one:1.0.0')
  t.match(await addImage(), { code: 1, stderr: /refused to connect to 127\.0\.0\.1/ })
  t.equal(network.direct, 0, 'every connection goes through the HTTP proxy')
})

await t.test('add: files, locks and diffs are bounded', async (t) => {
  const namespaces = Object.fromEntries(
    Array.from({ length: 1001 }, (_, i) => [`n${i}`, 'https://a.example']),
  )
  const base = t.testdir({
    'mirror.json': '',
    'registry.lock': JSON.stringify({ version: 1, namespaces, servers: {} }),
  })
  const mirror = join(base, 'mirror.json')
  truncateSync(mirror, 268_435_457)
  t.match(await usageError('a/b', '--registry-file', mirror), /mirror\.json: is larger than 256 MiB/)
  t.match(await usageError('--check', '-o', base), /namespaces: has 1001 entries; at most 1000/)
  const registry = await startRegistry(t)
  const many = (member: (index: number) => object) => Array.from({ length: 100 }, (_, i) => member(i))
  registry.publish(
    npmServer(name, '1.0.0', {
      packageArguments: many((i) => ({ type: 'named', name: `--a${i}`, value: `${i}` })),
      environmentVariables: many((i) => ({ name: `V${i}`, value: `${i}` })),
    }),
  )
  const { code, stdout } = await add(name, '--registry', registry.url)
  t.equal(code, 0)
  t.match(stdout, /^… and \d+ more lines$/m)
})
