/** Client entries as manifests: names, secrets, images, and their result in a cluster and in `gatehouse dev`. */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { splitCommand } from '../../../runtime/toolkit/local/command-line.ts'
import {
  type ConvertOptions,
  convertEntries,
  folderFiles,
  objectName,
  packageName,
  readEntries,
} from '../../../runtime/toolkit/clients/index.ts'
import { ObjectNames } from '../../../runtime/toolkit/clients/convert/names.ts'
import { isSecret } from '../../../runtime/toolkit/clients/convert/secrets.ts'
import { expand } from '../../../runtime/toolkit/local/pods.ts'

const options: ConvertOptions = {
  group: 'imported',
  description: 'd',
  incoming: { type: 'anonymous' },
  secrets: 'manifest',
  plain: new Set(),
  images: new Map(),
  keepSecretArgs: false,
  includeDisabled: false,
  allowLoopback: false,
  prefixOne: true,
  resolve: () => undefined,
  home: '/home/ada',
  violationsOf: (manifest) => validateResource(manifest).violations,
}

function convert(servers: unknown, given: Partial<ConvertOptions> = {}) {
  const { entries } = readEntries({
    file: 'f.json',
    client: 'plain',
    text: JSON.stringify({ mcpServers: servers }),
  })
  return convertEntries(entries, { ...options, ...given })
}

/** Returns the command line that `gatehouse dev` starts with the given environment. */
function localWords(
  manifest: ReturnType<typeof convert>['members'][number] | undefined,
  env: Record<string, string> = {},
) {
  const words = splitCommand(manifest?.metadata.annotations?.['gatehouse.dev/local-command'] ?? '')
  return typeof words === 'string' ? words : words.map((word) => expand(word, env))
}

t.test('names: object names are derived from names that users chose', async (t) => {
  const names: Readonly<Record<string, string>> = {
    GitHub: 'github',
    'my server (2)': 'my-server-2',
    Ünïçode: 'unicode',
    '--a--': 'a',
    日本語: 'server-77710aed',
    'a.b_c': 'a-b-c',
  }
  for (const [name, expected] of Object.entries(names)) t.equal(objectName(name), expected, name)
  const long = objectName('x'.repeat(300))
  t.ok(long.length <= 63 && /^[a-z0-9][a-z0-9-]*[a-z0-9]$/.test(long))
  t.not(objectName('x'.repeat(300)), objectName('x'.repeat(301)))
})

t.test(
  'names: different servers with the same name stay separate, and equal servers are merged',
  async (t) => {
    const { entries, members } = convert({ A: { command: 'x' }, a: { command: 'y' }, b: { command: 'x' } })
    t.strictSame(
      entries.map(({ outcome, object }) => [outcome, object]),
      [
        ['taken', 'MCPServer/a'],
        ['taken', 'MCPServer/a-2'],
        ['same', 'MCPServer/a'],
      ],
    )
    t.equal(members[0]?.metadata.annotations?.['gatehouse.dev/imported-from'], 'plain/A, plain/b')
  },
)

t.test('secrets: which values are treated as secret', async (t) => {
  const open: readonly (readonly [string, string])[] = [
    ['LOG_LEVEL', 'debug'],
    ['REGION', 'eu-west-1'],
    ['PORT', '8080'],
    ['VERBOSE', 'true'],
    ['EXTRA_PATH', '/usr/bin'],
    ['CONFIG_PATH', '/home/ada/.config/x.json'],
    ['BASE_URL', 'https://api.example.com/v1'],
    ['EMPTY', ''],
    ['API_TOKEN', ''],
  ]
  for (const [name, value] of open) t.notOk(isSecret(name, value), `${name}=${value}`)
  const secret: readonly (readonly [string, string])[] = [
    ['API_KEY', 'x'],
    ['GITHUB_PAT', '1'],
    ['github_token', 'true'],
    ['DB_PASSWORD', 'letmein'],
    ['SENTRY_DSN', 'https://a@b/1'],
    ['DATABASE_URL', 'postgres://localhost/x'],
    ['USER', 'ghp_0123456789abcdef'],
    ['X', 'sk-0123456789abcdef'],
    ['X', 'eyJhbGciOi.eyJzdWIi.c2ln'],
    ['X', 'https://user:pass@example.com/'],
    ['X', 'https://example.com/?key=1'],
    ['HOOK', 'https://hooks.example.com/T00/B00/a1b2c3d4e5f6g7h8'],
    ['X', 'a1b2c3d4e5f6g7h8'],
    ['X', 'thisisaverylongvaluewithoutanymeaning'],
    ['X', 'two\nlines'],
    ['X', '-----BEGIN PRIVATE KEY-----'],
  ]
  for (const [name, value] of secret) t.ok(isSecret(name, value), `${name}=${value}`)
})

t.test(
  'programs: variables stay or move into a Secret, with the same result in dev and in a cluster',
  async (t) => {
    const { members, secrets } = convert({
      s: {
        command: 'npx',
        args: ['-y', 'pkg'],
        env: { LOG_LEVEL: 'debug', TOKEN: 'canary', PRICE: '$(HOME) $$5' },
      },
    })
    t.match(members, [
      {
        kind: 'MCPServer',
        spec: {
          transport: 'stdio',
          image: 'docker.io/library/node:24-bookworm-slim',
          args: ['-y', 'pkg'],
          env: [{ name: 'LOG_LEVEL', value: 'debug' }],
          secrets: [
            { name: 's-secrets', key: 'TOKEN' },
            { name: 's-secrets', key: 'PRICE' },
          ],
          podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['npx'] }] } },
        },
      },
    ])
    t.match(secrets.manifests, [{ kind: 'Secret', stringData: { TOKEN: 'canary', PRICE: '$(HOME) $$5' } }])
    t.notMatch(JSON.stringify(members), 'canary')
    const plain = convert(
      { s: { command: 'a', env: { TOKEN: 'x', PRICE: '$(HOME) $$5' } } },
      { plain: new Set(['TOKEN', 'PRICE']) },
    )
    t.match(plain.members[0]?.spec, {
      env: [
        { name: 'TOKEN', value: 'x' },
        { name: 'PRICE', value: '$(HOME) $$5' },
      ],
    })
  },
)

t.test(
  'programs: secrets in arguments become variables, and the program gets the same arguments',
  async (t) => {
    const args = [
      '--api-key',
      'canary-1',
      '--token=canary-2',
      'PASSWORD=canary-3',
      '--header',
      'Authorization: Bearer canary-4',
      'postgresql://u:canary5@h/db',
      '--url=https://h/?access_token=canary-6',
      'ghp_canary7canary7',
      'Authorization: Bearer canary-8',
      'X-Api-Key:canary-9',
      '--author',
      'ada',
      "it's $5 $(X)",
      '--verbose',
    ]
    const { members, secrets, entries } = convert({ s: { command: 'tool', args } })
    t.equal(entries[0]?.outcome, 'taken')
    const text = JSON.stringify(members)
    t.notMatch(text, 'canary')
    const values = secrets.manifests[0]?.stringData ?? {}
    const spec = members[0]?.spec as {
      podTemplateSpec: { spec: { containers: { args: string[] }[] } }
      secrets: { key: string; targetEnvName?: string }[]
    }
    const env = Object.fromEntries(
      spec.secrets.map(({ key, targetEnvName }) => [targetEnvName ?? key, values[key] ?? '']),
    )
    t.strictSame(localWords(members[0], env), ['tool', ...args])
    t.strictSame(
      spec.podTemplateSpec.spec.containers[0]?.args.map((arg) => expand(arg, env)),
      args,
    )
    t.match(convert({ s: { command: 'tool', args } }, { keepSecretArgs: true }).members[0]?.spec, {
      secrets: undefined,
    })
  },
)

t.test('programs: references become listed empty keys, unless their value is known', async (t) => {
  const servers = {
    s: {
      command: 'x',
      args: ['--as', '${WHO}'],
      env: { KEY: '${MY_KEY}', DSN: 'h:${PW}', D: '${X:-dflt}', HERE: '${userHome}/a' },
    },
  }
  const open = convert(servers)
  t.strictSame(open.secrets.manifests[0]?.stringData, { DSN: 'h:${PW}', MY_KEY: '', WHO: '' })
  t.strictSame(open.secrets.missing, [
    { name: 's-secrets', key: 'MY_KEY', variables: ['MY_KEY'] },
    { name: 's-secrets', key: 'DSN', variables: ['PW'] },
    { name: 's-secrets', key: 'WHO', variables: ['WHO'] },
  ])
  t.match(open.members[0]?.spec, {
    env: [
      { name: 'D', value: 'dflt' },
      { name: 'HERE', value: '/home/ada/a' },
    ],
  })
  const known = convert(servers, { resolve: ({ name }) => ({ MY_KEY: 'k', PW: 'p', WHO: 'ada' })[name] })
  t.strictSame(
    [known.secrets.missing, known.secrets.manifests[0]?.stringData],
    [[], { DSN: 'h:p', KEY: 'k' }],
  )
  t.strictSame(localWords(known.members[0]), ['x', '--as', 'ada'])
})

t.test('programs: known, given and unknown images', async (t) => {
  const imageOf = (server: unknown, images: [string, string][] = []) =>
    convert({ S: server }, { images: new Map(images) }).members[0]?.spec
  t.match(imageOf({ command: 'uvx', args: ['x'] }), {
    image: /^ghcr\.io\/astral-sh\/uv:/,
    podTemplateSpec: { spec: { containers: [{ command: ['env', 'HOME=/tmp', 'uvx'] }] } },
  })
  t.match(imageOf({ command: '/opt/x', args: ['a'] }), { image: 'set-an-image.invalid/s:latest' })
  t.match(imageOf({ command: '/opt/x' }, [['S', 'r/i:1']]), { image: 'r/i:1' })
  t.match(imageOf({ command: 'docker', args: ['run', '-v', '~/a:/b', 'img', 'serve'] }), {
    image: 'img',
    args: ['serve'],
    volumes: [{ hostPath: '/home/ada/a', mountPath: '/b' }],
  })
  const [member] = convert({ s: { command: '/opt/x' } }).members
  t.match(validateResource(member).warnings, [/image is a placeholder/, /all sessions share one process/])
})

t.test('remote servers: every header is a secret, and addresses are checked as at admission', async (t) => {
  const { members, secrets, entries } = convert({
    a: {
      url: 'https://a.example/mcp',
      headers: { Authorization: 'Bearer canary', 'X-Plain': 'x', Host: 'evil.example' },
    },
    private: { url: 'http://10.0.0.8/mcp', headers: { 'X-K': 'canary' } },
    local: { url: 'http://127.0.0.1:1/mcp' },
    userinfo: { url: 'https://u:canary@a.example/mcp' },
    query: { url: 'https://a.example/mcp?api_key=canary' },
    metadata: { url: 'http://169.254.169.254/mcp' },
  })
  const outcome = Object.fromEntries(
    entries.map(({ entry, outcome, notes }) => [entry.name, [outcome, notes.join('; ')]]),
  )
  t.match(outcome, {
    a: ['partly', 'header Host: cannot be forwarded'],
    private: ['taken', /allowPrivateEndpoint is set.*not encrypted/],
    local: ['not taken', /the URL refers to this machine/],
    userinfo: ['not taken', /user name or password: send it as a header/],
    query: ['not taken', /secret in the query \(api_key\).*--keep-secret-args/],
    metadata: ['not taken', /spec\.remoteUrl points to a link-local, multicast/],
  })
  t.match(members, [
    {
      kind: 'MCPServerEntry',
      spec: {
        headerForward: {
          addHeadersFromSecret: [
            { headerName: 'Authorization', valueSecretRef: { name: 'a-secrets', key: 'authorization' } },
            { headerName: 'X-Plain' },
          ],
        },
      },
    },
    { spec: { allowPrivateEndpoint: true } },
  ])
  t.equal(members.length, 2)
  t.strictSame(
    secrets.manifests.map(({ metadata, stringData }) => [metadata.name, Object.keys(stringData ?? {})]),
    [
      ['a-secrets', ['authorization', 'x-plain']],
      ['private-secrets', ['x-k']],
    ],
  )
  t.notMatch(JSON.stringify([members, entries.map(({ notes }) => notes)]), 'canary')
  t.equal(
    convert({ q: { url: 'https://a.example/mcp?api_key=k' } }, { keepSecretArgs: true }).members.length,
    1,
  )
})

t.test('tools: a list of included tools becomes a filter', async (t) => {
  const text = JSON.stringify({
    mcpServers: { a: { httpUrl: 'https://a.example/mcp', includeTools: ['x', 'y'] } },
  })
  const { entries } = readEntries({ file: '/h/.gemini/settings.json', text })
  t.match(convertEntries(entries, options).entrance[1]?.spec, {
    config: { aggregation: { conflictResolution: 'prefix', tools: [{ workload: 'a', filter: ['x', 'y'] }] } },
  })
})

t.test('folders: the same entries result in the same bytes, and everything passes validation', async (t) => {
  const servers = {
    b: { command: 'npx', args: ['p'], env: { TOKEN: 'canary' } },
    a: { url: 'https://a.example', headers: { A: 'canary' } },
  }
  const reversed = Object.fromEntries(Object.entries(servers).toReversed())
  t.strictSame(folderFiles(convert(servers)), folderFiles(convert(reversed)))
  const oidc = { incoming: { type: 'oidc', config: 'corp', audience: 'tools' } } as const
  for (const given of [{}, oidc, { secrets: 'env' } as const]) {
    const { members, entrance } = convert(servers, given)
    for (const manifest of [...members, ...entrance]) t.strictSame(validateResource(manifest).violations, [])
  }
  const env = folderFiles(convert(servers, { secrets: 'env' }))
  t.equal(env.find(({ name }) => name === 'secrets.env')?.text, 'A_A=canary\nB_TOKEN=canary\n')
  t.match(
    env.find(({ name }) => name === 'kustomization.yaml')?.text,
    /secretGenerator:\n {2}- name: imported-secrets\n {4}envs:\n {6}- secrets\.env/,
  )
  for (const { name, text, secret } of [...folderFiles(convert(servers)), ...env]) {
    t.equal(/canary/.test(text), secret, `${name} ${secret ? 'holds' : 'holds no'} secrets`)
  }
  const lines = convert({ a: { command: 'x', env: { KEY: 'a\nb' } } }, { secrets: 'env' })
  t.throws(() => folderFiles(lines), /the secret A_KEY spans several lines.*--secrets manifest/)
})

t.test('names of programs: the package, the script, or the program', async (t) => {
  const nameOf = (...words: string[]) =>
    packageName({ command: [words[0] ?? ''], args: words.slice(1).map((word) => [word]) })
  t.equal(nameOf('npx', '-y', '@modelcontextprotocol/server-memory@1.2'), 'server-memory')
  t.equal(nameOf('uvx', '--from', 'git+https://x', 'mcp-server-git'), 'mcp-server-git')
  t.equal(nameOf('node', '--flag', '/x/server-everything/dist/index.js', 'stdio'), 'server-everything')
  t.equal(nameOf('python3', 'tools/weather.py'), 'weather')
  t.equal(nameOf('node', '-e', 'setInterval(() => {}, 1e6)'), 'node')
  t.equal(nameOf('/usr/bin/some-mcp'), 'some-mcp')
})

t.test('names: many servers with one name get unique names in linear time', async (t) => {
  const count = 100_000
  for (const name of ['server', 'x'.repeat(63)]) {
    const names = new ObjectNames()
    // A quadratic search would exceed the time limit of the file.
    const claimed = new Set(Array.from({ length: count }, () => names.claim(name)))
    t.equal(claimed.size, count)
    t.notOk([...claimed].some(({ length }) => length > 63))
  }
})

t.test('names: the name of an entry that is not converted stays free', async (t) => {
  const names = new ObjectNames()
  t.equal(names.claim('a'), 'a')
  t.equal(names.claim('a'), 'a-2')
  names.release('a-2')
  t.equal(names.claim('a'), 'a-2')
})
