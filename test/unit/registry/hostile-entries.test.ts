/** `gatehouse add`: entries that are false, malformed or too permissive are rejected, with all violations at once. */
import { existsSync, rmSync } from 'node:fs'
import t from 'tap'
import { addServer } from '../../../runtime/tools/registry/add.ts'
import { readEntry, type ServerDocument } from '../../../runtime/tools/registry/entry.ts'
import { serverManifests } from '../../../runtime/tools/registry/manifest.ts'
import { chooseTarget, type TargetOptions } from '../../../runtime/tools/registry/target.ts'
import { memoryVersion, npmServer, remoteServer } from '../../helpers/registry/registry.ts'

const name = 'io.github.test/one'
const options: TargetOptions = {
  source: undefined,
  values: new Map(),
  allowPrivate: false,
  digestOf: () => Promise.resolve(`sha256:${'a'.repeat(64)}`),
}

const read = (server: object, wanted: Parameters<typeof readEntry>[1] = { name, version: undefined }) =>
  readEntry({ server }, wanted)

function choose(server: object, more: Partial<TargetOptions> = {}) {
  return chooseTarget(read(server).server, { ...options, ...more })
}

async function manifestOf(server: object, more: Partial<TargetOptions> = {}) {
  const { server: document } = read(server)
  const chosen = await chooseTarget(document, { ...options, ...more })
  return serverManifests(document, chosen, { object: 'one', group: 'g' }).member
}

t.test('an entry for another name or version is rejected', (t) => {
  const server = npmServer('io.github.test/two', '1.0.0')
  t.throws(() => read(server), /returned another server, io\.github\.test\/two/)
  t.throws(
    () => read(npmServer(name, '1.0.1'), { name, version: '1.0.0' }),
    /returned version 1\.0\.1 instead of 1\.0\.0/,
  )
  t.throws(() => readEntry('text', { name, version: undefined }), /contains no server/)
  t.end()
})

t.test('a malformed entry is rejected with every violation', (t) => {
  const server = {
    name,
    version: '^1.0.0',
    title: 7,
    packages: [{ registryType: 'npm', transport: { type: 'pipe' }, fileSha256: 'x' }, 'text'],
    remotes: [{ type: 'streamable-http', url: 'x'.repeat(3000), headers: {} }],
  }
  for (const line of [
    /version: must be an exact version/,
    /title: is a whole number; must be a string/,
    /description: is required/,
    /packages\[0\]\.identifier: is required/,
    /packages\[0\]\.transport\.type: is a string of 4 characters; must be one of: stdio/,
    /packages\[0\]\.fileSha256: must be 64/,
    /packages\[1\]: is a string of 4 characters; must be an object/,
    /remotes\[0\]\.url: is a string of 3000 characters; must have 1 to 2048/,
    /remotes\[0\]\.headers: is an object; must be a list/,
  ])
    t.throws(() => read(server), line)
  const arguments_ = npmServer(name, '1.0.0', {
    packageArguments: [{ type: 'named' }, { type: 'positional' }],
  })
  t.throws(() => read(arguments_), /packageArguments\[0\]\.name: is required for a named argument/)
  t.throws(() => read(arguments_), /packageArguments\[1\]: a positional argument requires value or valueHint/)
  t.throws(
    () =>
      readEntry(
        {
          server: npmServer(name, '1.0.0'),
          _meta: { 'io.modelcontextprotocol.registry/official': { status: 'gone' } },
        },
        { name, version: undefined },
      ),
    /must be active, deprecated or deleted/,
  )
  t.end()
})

t.test('an entry that is too deep or too long is rejected', (t) => {
  let deep: unknown = 1
  for (let i = 0; i < 50; i++) deep = [deep]
  t.throws(() => read({ ...npmServer(name, '1.0.0'), _meta: deep }), /more than 32 levels deep/)
  const packages = Array.from({ length: 21 }, () => npmServer(name, '1.0.0')['packages'])
  t.throws(
    () => read({ ...npmServer(name, '1.0.0'), packages }),
    /packages: has 21 entries; at most 20 items/,
  )
  const invalid = Array.from({ length: 100 }, () => ({ type: 'named' }))
  let message = ''
  try {
    read(npmServer(name, '1.0.0', { packageArguments: invalid }))
  } catch (error) {
    message = String(error)
  }
  t.equal(message.split('\n').length, 21, 'at most 20 violations')
  t.end()
})

t.test('unknown members are listed and have no effect', async (t) => {
  const { server, ignored } = read(npmServer(name, '1.0.0', { hooks: { start: 'rm' }, runtimeHint: null }))
  t.strictSame(ignored, ['packages[0].hooks'])
  t.notMatch(JSON.stringify(server), 'rm')
})

const rejectedPackages: readonly (readonly [what: string, members: object, reason: RegExp])[] = [
  ['nuget', { registryType: 'nuget' }, /the package type nuget is not supported/],
  ['mcpb', { registryType: 'mcpb' }, /cannot run MCPB files; .*gatehouse unbundle/],
  ['a flag as a name', { identifier: '--registry=https://evil.example' }, /not a valid name/],
  ['a URL as a name', { identifier: 'https://evil.example/x.tgz' }, /not a valid name/],
  ['a path as a name', { identifier: '../x' }, /not a valid name/],
  ['a tag as a version', { version: 'beta' }, /requires an exact version/],
  ['a range as a version', { version: '1.x' }, /requires an exact version/],
  ['no version', { version: null }, /requires an exact version/],
  [
    'another package registry',
    { registryBaseUrl: 'https://evil.example' },
    /registryBaseUrl must be https:\/\/registry\.npmjs\.org/,
  ],
  ['a port', { transport: { type: 'streamable-http', url: 'http://localhost:1/mcp' } }, /only stdio is/],
  [
    '--privileged',
    { runtimeArguments: [{ type: 'named', name: '--privileged' }] },
    /runtimeArguments are rejected/,
  ],
  [
    'a volume',
    { runtimeArguments: [{ type: 'named', name: '-v', value: '/:/host' }] },
    /runtimeArguments are rejected/,
  ],
  [
    'a volume as one word',
    { runtimeArguments: [{ type: 'positional', value: '-v/:/host' }] },
    /runtimeArguments are rejected/,
  ],
  [
    'an open runtime argument',
    { runtimeArguments: [{ type: 'positional', valueHint: 'x' }] },
    /runtimeArguments are rejected/,
  ],
  [
    'NODE_OPTIONS',
    { environmentVariables: [{ name: 'NODE_OPTIONS', value: '--require=/x' }] },
    /variable NODE_OPTIONS is not allowed/,
  ],
  [
    'npm settings',
    { environmentVariables: [{ name: 'npm_config_registry', value: 'x' }] },
    /npm_config_registry is not allowed/,
  ],
  [
    'LD_PRELOAD',
    { environmentVariables: [{ name: 'LD_PRELOAD', value: '/x.so' }] },
    /LD_PRELOAD is not allowed/,
  ],
  [
    'a proxy for the download',
    { environmentVariables: [{ name: 'HTTPS_PROXY', value: 'http://evil.example' }] },
    /HTTPS_PROXY is not allowed/,
  ],
  [
    'a certificate for the download',
    { environmentVariables: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/x.pem' }] },
    /NODE_EXTRA_CA_CERTS is not allowed/,
  ],
  [
    'no TLS verification',
    { environmentVariables: [{ name: 'NODE_TLS_REJECT_UNAUTHORIZED', value: '0' }] },
    /NODE_TLS_REJECT_UNAUTHORIZED is not allowed/,
  ],
  [
    'a folder with settings of uv',
    { environmentVariables: [{ name: 'XDG_CONFIG_HOME', value: '/x' }] },
    /XDG_CONFIG_HOME is not allowed/,
  ],
  ['a variable with =', { environmentVariables: [{ name: 'A=B', value: 'x' }] }, /A=B is not allowed/],
]

t.test('a package that could widen what runs is rejected', async (t) => {
  for (const [what, members, reason] of rejectedPackages)
    await t.rejects(choose(npmServer(name, '1.0.0', { ...members })), reason, what)
  await t.resolves(choose(npmServer(name, '1.0.0', { runtimeArguments: [{ type: 'named', name: '-y' }] })))
})

t.test('a token is not accepted for an input that registry.lock stores', async (t) => {
  const token = `ghp_${'a1B2'.repeat(9)}`
  const server = npmServer(name, '1.0.0', { environmentVariables: [{ name: 'GITHUB' }] })
  const { inputs } = await choose(server, { values: new Map([['GITHUB', [token]]]) })
  t.match(inputs.problems, [/^GITHUB: the value contains a token/])
  t.notMatch(inputs.problems.join(), token, 'the message does not repeat the token')
  t.strictSame((await choose(server, { values: new Map([['GITHUB', ['acme']]]) })).inputs.problems, [])
})

t.test('the name alone makes a secret of an undeclared input, if its value can be any text', async (t) => {
  const environmentVariables = [
    { name: 'GITHUB', default: 'none' },
    { name: 'MODE', choices: ['fast', 'safe'] },
    { name: 'COUNT', format: 'number' },
  ]
  const server = npmServer(name, '1.0.0', { environmentVariables })
  const values = new Map([['GITHUB', []]])
  const { inputs, secrets } = await choose(server, { values })
  t.strictSame(inputs.problems, [])
  t.match(secrets, [{ name: 'GITHUB' }])
  const { spec } = await manifestOf(server, { values })
  t.match(spec, { secrets: [{ name: 'one-secrets', key: 'GITHUB' }] })
  t.notMatch(JSON.stringify(spec), /none/)
  for (const input of ['MODE', 'COUNT'])
    t.match((await choose(server, { values: new Map([[input, []]]) })).inputs.problems, [/requires a value/])
  const region = remoteServer(name, 'https://a.example.com/{region}', {
    variables: { region: { default: 'eu' } },
  })
  const inUrl = await choose(region, { values: new Map([['region', []]]) })
  t.match(inUrl.inputs.problems, ['region: requires a value, as in --set region=VALUE'])
})

t.test('an image is rejected when its tag, version and registry disagree', async (t) => {
  const choosing = (members: object) =>
    choose(npmServer(name, '1.0.0', { registryType: 'oci', version: null, ...members }))
  const identifier = 'ghcr.io/acme/one:1.0.0'
  await t.rejects(choosing({ identifier: 'acme/one', version: '1.0.0' }), /requires a tag or a digest/)
  await t.rejects(choosing({ identifier: 'localhost:5000/one' }), /requires a tag or a digest/)
  await t.rejects(choosing({ identifier, version: '2.0.0' }), /version 2\.0\.0 differs from the tag/)
  const elsewhere = { identifier: 'acme/one:1.0.0', registryBaseUrl: 'https://ghcr.io' }
  await t.rejects(choosing(elsewhere), /host in registryBaseUrl differs/)
  await t.resolves(choosing({ identifier, version: '1.0.0', registryBaseUrl: 'https://ghcr.io' }))
  await t.resolves(choosing({ identifier: 'acme/one:1.0.0', registryBaseUrl: 'https://docker.io' }))
})

t.test('a server cannot replace group.yaml or kustomization.yaml', async (t) => {
  for (const object of ['group', 'kustomization']) {
    const server = npmServer(`io.github.test/${object}`, '1.0.0')
    const folder = t.testdir({ 'mirror.json': JSON.stringify([server]) })
    const adding = addServer(server.name, {
      registryFile: `${folder}/mirror.json`,
      offline: true,
      output: `${folder}/mcp`,
      set: new Map(),
      allowPrivate: false,
      force: true,
      dryRun: false,
      format: 'json',
    })
    await t.rejects(adding, { message: /is reserved for another file; use --name/ }, object)
    t.notOk(existsSync(`${folder}/mcp`), 'nothing is written')
  }
})

t.test('a second name for a locked server is rejected while its manifest exists', async (t) => {
  const server = npmServer(name, '1.0.0')
  const folder = t.testdir({ 'mirror.json': JSON.stringify([server]), mcp: {} })
  const add = (object: string) =>
    addServer(server.name, {
      registryFile: `${folder}/mirror.json`,
      offline: true,
      output: `${folder}/mcp`,
      name: object,
      set: new Map(),
      allowPrivate: false,
      force: false,
      dryRun: false,
      format: 'json',
    })
  await add('one')
  await t.rejects(add('two'), { message: /already has the name one; remove one\.yaml/ })
  t.notOk(existsSync(`${folder}/mcp/two.yaml`))
  rmSync(`${folder}/mcp/one.yaml`)
  await add('two')
  t.ok(existsSync(`${folder}/mcp/two.yaml`))
})

const rejectedUrls: readonly (readonly [url: string, reason: RegExp])[] = [
  ['http://127.0.0.1/mcp', /loopback address/],
  ['http://[::ffff:127.0.0.1]/mcp', /loopback address/],
  ['http://169.254.169.254/latest', /metadata address/],
  ['https://10.0.0.7/mcp', /private address; use --allow-private/],
  ['https://localhost/mcp', /local host/],
  ['https://kubernetes.default.svc/api', /Kubernetes API/],
  ['http://mcp.example.com/mcp', /must start with https/],
  ['ftp://mcp.example.com/mcp', /must start with/],
  ['https://user:pw@mcp.example.com/mcp', /credentials/],
  ['https://mcp.example.com/mcp?api_key=0123456789abcdef0123', /secret in the query/],
]

t.test('a remote with a refused address is rejected', async (t) => {
  for (const [url, reason] of rejectedUrls) await t.rejects(choose(remoteServer(name, url)), reason, url)
  const allowPrivate = true
  await t.resolves(choose(remoteServer(name, 'http://10.0.0.7/mcp'), { allowPrivate }))
  await t.rejects(choose(remoteServer(name, 'http://169.254.169.254/'), { allowPrivate }), /never allowed/)
  await t.rejects(choose(remoteServer(name, 'http://127.0.0.1/'), { allowPrivate }), /never allowed/)
})

t.test('a variable in a host needs a value from the user and cannot change the URL', async (t) => {
  const server = remoteServer(name, 'https://{host}.example.com/{path}', {
    variables: { host: { default: 'evil' }, path: { default: 'mcp' } },
  })
  const unset = await choose(server)
  t.match(unset.inputs.missing, [{ name: 'host' }], 'a default is not enough')
  const set = (host: string) => choose(server, { values: new Map([['host', [host]]]) })
  t.equal((await set('eu')).runs, 'https://eu.example.com/mcp')
  for (const host of ['evil.example/', 'evil.example#', 'evil@', 'a b', '..', 'x%2f', 'evil.example:1'])
    t.match((await set(host)).inputs.problems, [/can contain only letters/], host)
  for (const url of [
    'https:///{host}/mcp',
    'https://\t/{host}/mcp',
    'https:/{host}/mcp',
    'https:\\\\{host}/mcp',
  ]) {
    const variables = { host: { default: 'evil.example' } }
    const hidden = await choose(remoteServer(name, url, { variables }))
    t.match(hidden.inputs.missing, [{ name: 'host' }], JSON.stringify(url))
  }
  const twice = await choose(server, { values: new Map([['host', ['a', 'b']]]) })
  t.match(twice.inputs.problems, ['host: can be set only once'])
  const secret = remoteServer(name, 'https://a.example.com/{key}', { variables: { key: { isSecret: true } } })
  t.match((await choose(secret)).inputs.problems, [
    /key: is a secret in the URL, which the manifest would contain/,
  ])
})

t.test('headers: secrets become references; restricted headers and line breaks are rejected', async (t) => {
  const headers = [
    { name: 'Authorization', value: 'Bearer {token}', variables: { token: { isSecret: true } } },
    { name: 'X-Region', default: 'eu' },
  ]
  const manifest = await manifestOf(remoteServer(name, 'https://a.example.com/mcp', { headers }))
  t.match(manifest.spec, {
    headerForward: {
      addHeadersFromSecret: [
        { headerName: 'Authorization', valueSecretRef: { name: 'one-secrets', key: 'authorization' } },
        { headerName: 'X-Region', valueSecretRef: { name: 'one-secrets', key: 'x-region' } },
      ],
    },
  })
  const withHeader = (header: object) =>
    manifestOf(remoteServer(name, 'https://a.example.com/mcp', { headers: [header] }))
  await t.rejects(withHeader({ name: 'Host', value: 'internal.example' }), /header Host: cannot be forwarded/)
  await t.rejects(withHeader({ name: 'X-A', value: 'a\r\nHost: b' }), /header X-A/)
  await t.rejects(withHeader({ name: 'X A', value: 'a' }), /is not a header name/)
})

t.test('arguments are literal words, and secrets in arguments come from the Secret', async (t) => {
  const packageArguments = [
    { type: 'positional', value: '$(HOME); rm -rf ~' },
    { type: 'named', name: '--api-key', isSecret: true, isRequired: true },
    { type: 'named', name: '--verbose', isRequired: true },
    { type: 'named', name: '--write', description: 'Enables writes' },
    { type: 'named', name: '--mode', default: 'safe' },
  ]
  const { metadata, spec } = await manifestOf(npmServer(name, '1.0.0', { packageArguments }))
  t.equal(
    metadata.annotations?.['gatehouse.dev/local-command'],
    `npx -y @modelcontextprotocol/server-memory@${memoryVersion} '$$(HOME); rm -rf ~' --api-key '$(__API_KEY)' --verbose --mode safe`,
  )
  t.match(spec, { secrets: [{ name: 'one-secrets', key: '--api-key', targetEnvName: '__API_KEY' }] })
  const values = new Map([['--write', []]])
  const written = await manifestOf(npmServer(name, '1.0.0', { packageArguments }), { values })
  t.match(written.metadata.annotations?.['gatehouse.dev/local-command'], / --verbose --write --mode safe$/)
})

t.test('images are pinned by digest; remotes are preferred; --source selects', async (t) => {
  const image = { registryType: 'oci', identifier: 'ghcr.io/acme/one:1.0.0', transport: { type: 'stdio' } }
  const server: ServerDocument = {
    ...read(remoteServer(name, 'https://a.example.com/mcp')).server,
    packages: [image],
  }
  t.equal((await choose(server)).source, 'remote')
  const manifest = await manifestOf(server, { source: 'oci' })
  t.equal(manifest.spec?.['image'], `ghcr.io/acme/one:1.0.0@sha256:${'a'.repeat(64)}`)
  const digest = `sha256:${'b'.repeat(64)}`
  const pinned = { ...server, packages: [{ ...image, identifier: `ghcr.io/acme/one@${digest}` }] }
  t.match(await choose(pinned, { source: 'oci' }), { digest, runs: `ghcr.io/acme/one@${digest}` })
  const hashed = npmServer(name, '1.0.0', { fileSha256: 'c'.repeat(64) })
  t.notOk(
    'digest' in (await choose(hashed)),
    'the hash of a file that Gatehouse does not verify is no digest',
  )
  await t.rejects(
    choose(server, { source: 'npm' }),
    /the entry does not offer npm; use --source with one of: remote, oci/,
  )
  const flag = { ...server, packages: [{ ...image, identifier: '--privileged' }] }
  await t.rejects(choose(flag, { source: 'oci' }), /not a valid name/)
})
