/** Client files with odd or hostile values. */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { splitCommand } from '../../../runtime/toolkit/local/command-line.ts'
import { expand } from '../../../runtime/toolkit/local/pods.ts'
import { referenceLookup } from '../../../runtime/toolkit/client-files/references.ts'
import { refuseUnresolved, withEnvFiles } from '../../../runtime/tools/run/variables.ts'
import { type ClientId, convertEntries, readEntries } from '../../../runtime/toolkit/clients/index.ts'
import { literalOf } from '../../../runtime/toolkit/clients/entries/value.ts'

function read(client: ClientId | 'plain', entry: unknown) {
  const key = client === 'goose' ? 'extensions' : 'mcpServers'
  return readEntries({ file: 'f.json', client, text: JSON.stringify({ [key]: { s: entry } }) }).entries
}

function convert(client: ClientId | 'plain', entry: unknown, env: Record<string, string> = {}) {
  return convertEntries(read(client, entry), {
    group: 'g',
    description: 'd',
    incoming: { type: 'anonymous' },
    secrets: 'manifest',
    plain: new Set(),
    images: new Map(),
    keepSecretArgs: false,
    includeDisabled: false,
    allowLoopback: false,
    prefixOne: true,
    resolve: referenceLookup(env),
    home: '/home/ada',
    violationsOf: (manifest) => validateResource(manifest).violations,
  })
}

const outcome = (client: ClientId | 'plain', entry: unknown) => {
  const [first] = convert(client, entry).entries
  return [first?.outcome, ...(first?.notes ?? [])]
}

/** Returns the words that `gatehouse dev` starts, with every Secret in its environment. */
function startedWords(client: ClientId | 'plain', entry: unknown, env: Record<string, string> = {}) {
  const { members, secrets } = convert(client, entry, env)
  const values: Record<string, string> = Object.assign({}, ...secrets.manifests.map((one) => one.stringData))
  const line = members[0]?.metadata.annotations?.['gatehouse.dev/local-command'] ?? ''
  const words = splitCommand(line)
  return typeof words === 'string' ? words : words.map((word) => expand(word, values))
}

t.test('names of Object.prototype members are ordinary unknown names', async (t) => {
  for (const name of ['constructor', '__proto__', 'toString', 'valueOf']) {
    t.strictSame(
      outcome('plain', { type: name, url: 'https://a.example/mcp' }),
      ['not taken', `has the unsupported type "${name}"`],
      name,
    )
    t.match(outcome('plain', { command: name }), ['taken', /a cluster requires an image/], name)
    const bridge = ['mcp-remote', 'https://a.example/mcp', '--transport', name]
    t.match(
      read('plain', { command: 'npx', args: bridge })[0]?.target,
      { transport: 'streamable-http' },
      name,
    )
    const lookup = referenceLookup(withEnvFiles({}, []))
    t.throws(() => refuseUnresolved(read('plain', { command: 'x', args: [`\${${name}}`] }), lookup), {
      message: new RegExp(`variables not set: ${name} for s`),
    })
  }
})

t.test('a dollar before a reference or a secret stays a dollar', async (t) => {
  const env = { KEY: 'k1' }
  t.strictSame(startedWords('copilot', { command: 'x', args: ['cost $$KEY', '$${KEY}!'] }, env), [
    'x',
    'cost $k1',
    '$k1!',
  ])
  t.strictSame(startedWords('copilot', { command: 'x', args: ['cost $$KEY', '$${KEY}!'] }), [
    'x',
    'cost $',
    '$!',
  ])
  const token = 'ghp_abcdefghijk'
  for (const arg of [`tok=$${token}`, `$$${token}`, `a$(b)$${token}$`])
    t.strictSame(startedWords('plain', { command: 'x', args: [arg] }), ['x', arg], arg)
})

t.test('an empty list of tools allows no tool, and `*` in a list allows all', async (t) => {
  for (const [client, member] of [
    ['copilot', 'tools'],
    ['gemini', 'includeTools'],
    ['goose', 'available_tools'],
  ] as const) {
    const command = client === 'goose' ? 'cmd' : 'command'
    const filters = (tools: string[]) => {
      const { entrance } = convert(client, { [command]: 'x', [member]: tools })
      return JSON.stringify(entrance[1]?.spec?.['config'] ?? null)
    }
    const empty = outcome(client, { [command]: 'x', [member]: [] })
    if (client === 'goose') t.equal(empty[0], 'taken', 'Goose offers every tool for an empty list')
    else t.strictSame(empty, ['off', `offers no tools: the list "${member}" is empty`], client)
    t.notMatch(filters(['*', 'b']), /filter/, client)
    t.match(filters(['a']), /"filter":\["a"\]/, client)
  }
})

t.test('a switch given as a string is parsed as a switch', async (t) => {
  for (const disabled of ['true', 'TRUE', 'yes', 'on', true])
    t.equal(read('cline', { command: 'x', disabled })[0]?.enabled, false, String(disabled))
  for (const enabled of ['false', 'no', 'off', false])
    t.equal(read('goose', { cmd: 'x', enabled })[0]?.enabled, false, String(enabled))
  t.match(outcome('cline', { command: 'x', disabled: 'perhaps' }), [
    'partly',
    'disabled: is an unknown field',
  ])
})

t.test('hidden tools of a client are reported as not hidden by Gatehouse', async (t) => {
  t.match(outcome('cline', { command: 'x', disabledTools: ['rm'] }), [
    'partly',
    /^disabledTools: the list of hidden/,
  ])
})

t.test('a NUL character is rejected, and its value is not shown', async (t) => {
  const nul = 'canary\0'
  for (const [entry, where] of [
    [{ command: nul }, 'command'],
    [{ command: 'x', args: ['a', nul] }, 'argument 2'],
    [{ command: 'x', env: { TOKEN: nul } }, 'variable TOKEN'],
    [{ url: 'https://a.example', headers: { 'X-Key': nul } }, 'header X-Key'],
  ] as const)
    t.strictSame(outcome('plain', entry), ['not taken', `its ${where} contains a NUL character`], where)
})

t.test('an invalid header value is rejected, and its value is not shown', async (t) => {
  for (const value of ['canary\r\nX-Admin: 1', 'canary\u{1f511}'])
    t.strictSame(outcome('plain', { url: 'https://a.example', headers: { 'X-Key': value } }), [
      'not taken',
      'its header X-Key must not contain control characters or characters beyond Latin-1',
    ])
})

t.test('cmd: a caret escapes the next character', async (t) => {
  const words = (...args: string[]) => {
    const target = read('plain', { command: 'cmd', args })[0]?.target
    return target?.kind === 'program' ? [target.command, ...target.args].map(literalOf) : target
  }
  t.strictSame(words('/c', 'npx', '-y', 'x', 'https://a.example/?b=1^&c=2'), [
    'npx',
    '-y',
    'x',
    'https://a.example/?b=1&c=2',
  ])
  t.strictSame(words('/c', 'npx -y x ^& ^^'), ['npx', '-y', 'x', '&', '^'])
  t.strictSame(words('/c', 'npx -y "a^b"'), ['npx', '-y', 'a^b'])
  t.strictSame(words('/c', 'npx x & calc'), ['cmd', '/c', 'npx x & calc'])
})

t.test('docker: flags with references in them', async (t) => {
  const entry = { command: 'docker', args: ['run', '-i', '-e', '${PAIR}', '--env=${PAIR}', 'img:1'] }
  t.match(outcome('plain', entry), ['partly', /^-e: this container flag/])
  const attached = ['run', '--env=TOKEN=${MINE}', '-v${HOME}/x:/x', 'img:1']
  t.match(read('plain', { command: 'docker', args: attached })[0]?.target, { container: { image: 'img:1' } })
  const words = startedWords('plain', entry, { PAIR: 'A=b' })
  t.strictSame(words, ['docker', 'run', '-i', '-e', 'A=b', '--env=A=b', 'img:1'])
})

t.test('a file of variables may start with a byte order mark', async (t) => {
  const folder = t.testdir({ bom: '\ufeffA=1\nB=2\n', utf16: Buffer.from('\ufeffA=1\n', 'utf16le') })
  t.match(withEnvFiles({}, [`${folder}/bom`]), { A: '1', B: '2' })
  t.throws(() => withEnvFiles({}, [`${folder}/utf16`]), {
    message: /--env-file: .*utf16 is UTF-16; save it as UTF-8/,
  })
})
