/**
 * A resource can have the name of any command. The name follows `--` wherever a command line contains it, and a word
 * after `--` is never a command.
 */
import t from 'tap'
import type { Command } from 'commander'
import type { CliCommand } from '../../../runtime/toolkit/terminal/command.ts'
import { commandsOf } from '../../../runtime/cli/commands.ts'
import { rootCommand } from '../../../runtime/toolkit/terminal/program.ts'
import { settledCluster } from '../../../runtime/toolkit/local/cluster/settled-cluster.ts'
import { servingCertificate } from '../../hooks/serving-certificate.ts'
import { untyped } from '../../helpers/untyped.ts'

/** The resources whose pods start a proxy, each in its own namespace. */
const forms: readonly (readonly [namespace: string, kind: string, spec: object])[] = [
  ['plain', 'MCPServer', { image: 'example.com/x:1', transport: 'streamable-http' }],
  ['attached', 'MCPServer', { image: 'example.com/x:1', transport: 'stdio' }],
  [
    'bridged',
    'MCPServer',
    {
      image: 'example.com/x:1',
      transport: 'stdio',
      podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['serve'] }] } },
    },
  ],
  ['remote', 'MCPRemoteProxy', { remoteUrl: 'https://mcp.example.com/mcp' }],
  ['configured', 'MCPRemoteProxy', { remoteUrl: 'https://mcp.example.com/mcp', trustProxyHeaders: true }],
  ['team', 'MCPRemoteProxy', { remoteUrl: 'https://mcp.example.com/mcp', tls: { secretName: 'tls' } }],
]

const tlsSecret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'tls', namespace: 'team' },
  type: 'kubernetes.io/tls',
  stringData: servingCertificate,
}

/** Returns the tree of `only`, or the whole tree. */
async function fullProgram(only?: string): Promise<CliCommand> {
  const program = rootCommand('gatehouse')
  for (const [name, { load }] of Object.entries(commandsOf(program, async () => {})))
    if (only === undefined || only === name) await load()
  return program
}

function descendants(command: Command): readonly Command[] {
  return command.commands.flatMap((one) => [one, ...descendants(one)])
}

function namesOf(program: Command): readonly string[] {
  const names = descendants(program).flatMap((command) => [command.name(), ...command.aliases()])
  return [...new Set([...names, 'help'])].sort()
}

function pathOf(command: Command): readonly string[] {
  return command.parent ? [...pathOf(command.parent), command.name()] : []
}

/** Returns the commands that have both operands and subcommands. */
function ambiguousCommands(program: Command): readonly Command[] {
  return descendants(program).filter(
    ({ commands, registeredArguments }) => commands.length > 0 && registeredArguments.length > 0,
  )
}

/** Returns the operands that reach the action of the command at `path`. */
async function operandsOf(path: readonly string[], args: readonly string[]): Promise<unknown> {
  const program = (await fullProgram(path[0])).configureOutput({ writeErr: () => {} })
  const command = descendants(program).find((one) => pathOf(one).join(' ') === path.join(' '))
  const seen: unknown[] = []
  for (const one of descendants(program)) one.exitOverride().action(() => void seen.push(pathOf(one)))
  command?.action(
    (...given: unknown[]) => void seen.push(...given.slice(0, command.registeredArguments.length)),
  )
  await program.parseAsync([...args], { from: 'user' })
  return seen
}

await t.test('a word behind -- is an operand, at every level of the command table', async (t) => {
  const program = await fullProgram()
  const ambiguous = ambiguousCommands(program).map(pathOf)
  t.ok(ambiguous.some((path) => path.join(' ') === 'proxy'))
  for (const path of ambiguous) {
    const command = descendants(program).find((one) => pathOf(one).join(' ') === path.join(' '))
    const required = (command?.options ?? []).filter(({ mandatory }) => mandatory)
    const flags = required.map(({ long }) => `${long}=x`)
    const isVariadic = command?.registeredArguments[0]?.variadic === true
    for (const name of namesOf(program)) {
      const seen = await operandsOf(path, [...path, ...flags, '--', name])
      t.same(seen, [isVariadic ? [name] : name], [...path, '--', name].join(' '))
    }
  }
})

await t.test('pods of resources with the name of a command start the server with that name', async (t) => {
  const names = namesOf(await fullProgram()).filter((name) => /^[a-z]/.test(name))
  t.ok(names.includes('stdio') && names.includes('tunnel'))
  const file = t.testdir({
    'all.yaml': [tlsSecret, ...names.flatMap((name, index) => manifestsNamed(name, index))]
      .map(documentOf)
      .join(''),
  })
  const { cluster, invalid } = await settledCluster([file], 'gatehouse:test')
  t.equal(invalid, undefined)
  let proxies = 0
  let withTls = 0
  for (const object of cluster?.objects ?? []) {
    for (const container of untyped(object).spec?.template?.spec?.containers ?? []) {
      const { args = [] } = container
      if (args[0] !== 'proxy') continue
      proxies++
      if (args.includes('--tls-cert-file=/etc/gatehouse/tls/tls.crt')) withTls++
      const [owner = ''] = untyped(object).metadata.ownerReferences.map((one: { name: string }) => one.name)
      t.same(await operandsOf(['proxy'], args), [owner], owner)
    }
  }
  t.ok(proxies >= names.length, `${proxies} proxies`)
  t.ok(withTls > 0)
})

/** Returns manifests with this name: all forms for names below `proxy`, one form otherwise. */
function manifestsNamed(name: string, index: number): readonly object[] {
  const chosen = ['stdio', 'tunnel', 'help'].includes(name) ? forms : [forms[index % forms.length]]
  return chosen
    .filter((form) => form !== undefined)
    .map(([namespace, kind, spec]) => ({
      apiVersion: 'gatehouse.dev/v1beta1',
      kind,
      metadata: { name, namespace },
      spec,
    }))
}

function documentOf(object: object): string {
  return `---\n${JSON.stringify(object)}\n`
}
