/** Programs that only start a program or connect to a server: shells, containers, bridges, and Gatehouse itself. */
import t from 'tap'
import { literalOf } from '../../../runtime/toolkit/clients/entries/value.ts'
import { type ClientId, readEntries } from '../../../runtime/toolkit/clients/index.ts'

const one = (client: ClientId | 'plain', entry: unknown) =>
  readEntries({ file: 'x.json', client, text: JSON.stringify({ mcpServers: { s: entry } }) }).entries[0]
const run = (...words: string[]) => {
  const [command, ...args] = words
  return one('plain', { command, args })?.target
}

t.test('wrappers: a Windows shell and Gatehouse itself are unwrapped', async (t) => {
  t.match(run('cmd', '/c', 'npx', '-y', 'x'), { kind: 'program', command: ['npx'] })
  t.match(run('C:\\Windows\\System32\\CMD.EXE', '/C', 'npx'), { kind: 'program', command: ['npx'] })
  const words = (...given: string[]) => {
    const target = run(...given)
    return target?.kind === 'program'
      ? [target.command, ...target.args].map((value) => literalOf(value))
      : target
  }
  for (const given of [
    ['cmd', '/c', 'npx -y "a b" x'],
    ['cmd.exe', '/d', '/s', '/c', 'npx -y "a b" x'],
    ['cmd', '/c npx', '-y', 'a b', 'x'],
    ['cmd', '/C', 'npx  -y  "a b"', 'x'],
  ])
    t.strictSame(words(...given), ['npx', '-y', 'a b', 'x'], given.join(' '))
  t.strictSame(words('cmd', '/c', '"C:\\Program Files\\node.exe" a.js'), [
    'C:\\Program Files\\node.exe',
    'a.js',
  ])
  t.strictSame(words('cmd', '/c', 'C:\\My Tools\\a.exe'), ['C:\\My Tools\\a.exe'])
  t.match(run('cmd', '/c', 'npx -y mcp-remote https://a.example/mcp'), { kind: 'remote' })
  for (const line of ['set A=1 && npx x', 'npx x > log', 'npx x %HOME%'])
    t.strictSame(words('cmd', '/c', line), ['cmd', '/c', line], 'a line that needs the shell is unchanged')
  t.match(run('/opt/gatehouse', 'proxy', 'stdio', 'https://a'), { kind: 'unusable', harmless: true })
  t.match(run('node', '/x/gatehouse.js', 'proxy', 'stdio', 'https://a'), { kind: 'unusable', harmless: true })
  t.match(run('npx', 'gatehouse', 'proxy', 'stdio', 'https://a'), { kind: 'unusable', harmless: true })
  t.match(run('other', 'proxy', 'stdio', 'https://a'), { kind: 'program' })
})

t.test('wrappers: a container becomes its image, with variables and volumes', async (t) => {
  const target = run(
    'docker',
    'run',
    '-i',
    '--rm',
    '-e',
    'A',
    '-e',
    'B=1=2',
    '--env=C=3',
    '-v',
    '/h:/m:ro',
    '--mount',
    'type=bind,src=/s,dst=/d',
    '--network',
    'host',
    '--name=x',
    'img:1',
    'serve',
    '-e',
    'mine',
  )
  t.match(target, {
    kind: 'program',
    container: {
      image: 'img:1',
      args: [['serve'], ['-e'], ['mine']],
      volumes: [
        { host: '/h', mount: '/m', readOnly: true },
        { host: '/s', mount: '/d', readOnly: false },
      ],
    },
  })
  if (target?.kind !== 'program') return t.fail('no program')
  t.strictSame(
    [...target.env],
    [
      ['A', [{ kind: 'env', name: 'A' }]],
      ['B', ['1=2']],
      ['C', ['3']],
    ],
  )
  t.strictSame(
    target.args.flat(),
    [
      'run',
      '-i',
      '--rm',
      '-e',
      'A',
      '-e',
      'B',
      '--env=C',
      '-v',
      '/h:/m:ro',
      '--mount',
      'type=bind,src=/s,dst=/d',
      '--network',
      'host',
      '--name=x',
      'img:1',
      'serve',
      '-e',
      'mine',
    ],
    'values are left to the environment',
  )
  t.match(one('plain', { command: 'docker', args: ['run', '--network', 'host', 'img'] })?.notes, [
    { field: '--network' },
  ])
  t.match(run('docker', 'compose', 'up'), { kind: 'program', container: undefined })
})

t.test('wrappers: an unknown flag of a container is reported and skipped', async (t) => {
  const cases: readonly (readonly [
    words: string,
    image: string,
    args: readonly string[],
    skipped: readonly string[],
  ])[] = [
    ['run --frob x img', 'img', [], ['--frob']],
    ['run --frob=x img serve', 'img', ['serve'], ['--frob']],
    ['run --frob ghcr.io/a/b serve', 'ghcr.io/a/b', ['serve'], ['--frob']],
    ['run --frob mcp/fetch:1 --x', 'mcp/fetch:1', ['--x'], ['--frob']],
    ['run --frob img', 'img', [], ['--frob']],
    ['run --frob 5 -e A=1 mcp/fetch', 'mcp/fetch', [], ['--frob']],
    ['run -itZ img', 'img', [], ['-Z']],
    ['run -itd --pids-limit 5 --pull=always -p8080:80 img', 'img', [], ['--pids-limit']],
    ['run -uroot -v/h:/m img', 'img', [], ['-u']],
    ['run -i -- img', 'img', [], []],
    ['--context far container run -i img', 'img', [], []],
  ]
  for (const [words, image, args, skipped] of cases) {
    const entry = one('plain', { command: 'docker', args: words.split(' ') })
    const flags = entry?.notes.map(({ field, loses }) => [field, loses])
    t.match(entry?.target, { container: { image, args: args.map((word) => [word]) } }, words)
    t.strictSame(
      flags,
      skipped.map((flag) => [flag, true]),
      words,
    )
  }
  t.match(
    one('plain', { command: 'docker', args: ['run', '-eTOKEN', '-eB=2', 'img'] })?.target,
    {
      args: [['run'], ['-e'], ['TOKEN'], ['-e'], ['B'], ['img']],
      env: new Map([
        ['TOKEN', [{ kind: 'env', name: 'TOKEN' }]],
        ['B', ['2']],
      ]),
    },
    'the name of a variable is not detected as a secret',
  )
})

t.test('wrappers: a bridge becomes the remote server behind it', async (t) => {
  const target = one('claude-desktop', {
    command: 'npx',
    args: [
      '-y',
      'mcp-remote@0.1.2',
      'https://a.example/mcp',
      '3334',
      '--header',
      'X-Key: ${KEY}',
      '--transport',
      'sse-only',
      '--allow-http',
    ],
    env: { KEY: 'canary' },
  })?.target
  t.match(target, { kind: 'remote', url: ['https://a.example/mcp'], transport: 'sse' })
  t.strictSame(target?.kind === 'remote' && [...target.headers], [['X-Key', ['canary']]])
  t.match(
    run('npx', '-y', 'supergateway', '--streamableHttp', 'https://a.example/x', '--oauth2Bearer', 't'),
    {
      kind: 'remote',
      transport: 'streamable-http',
      headers: new Map([['Authorization', ['Bearer t']]]),
    },
  )
  t.match(run('uvx', 'mcp-proxy', '-H', 'X-A', 'b', '--transport', 'streamablehttp', 'https://a.example/x'), {
    kind: 'remote',
    transport: 'streamable-http',
  })
  t.match(run('npx', 'mcp-remote', 'https://a.example', '--unknown-flag', 'x'), { kind: 'program' })
  t.match(run('npx', 'mcp-remote-other', 'https://a.example'), { kind: 'program' })
})
