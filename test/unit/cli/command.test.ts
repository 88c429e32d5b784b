/** The command line of the program: help, switches with values, completion, version. */
import { type StdioOptions, spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Option } from 'commander'
import { CliCommand } from '../../../runtime/toolkit/terminal/command.ts'
import { candidates } from '../../../runtime/cli/help/complete.ts'
import { hooksProgram, program, runGatehouse } from '../../helpers/gatehouse.ts'

const paths = [
  ['proxy'],
  ['proxy', 'stdio'],
  ['proxy', 'tunnel'],
  ['vmcp', 'serve'],
  ['vmcp', 'validate'],
  ['vmcp', 'init'],
  ['relay'],
  ['validate'],
  ['render'],
  ['dev'],
  ['run'],
  ['import'],
  ['client', 'add'],
  ['completion'],
  ['version'],
]

await t.test(
  'help: shows no meaningless default, and options and their texts fit into 80 columns',
  async (t) => {
    for (const path of paths) {
      const { code, stdout } = await runGatehouse([...path, '--help'])
      t.equal(code, 0, path.join(' '))
      t.notMatch(stdout, /default: (\[\]|false|undefined|"")/, path.join(' '))
      const long = stdout.split('\n').filter((line) => /^ {2}-|^ {10}/.test(line) && line.length > 80)
      t.same(long, [], `${path.join(' ')}: lines over 80 columns`)
    }
  },
)

await t.test('help: an unknown command is named at any depth', async (t) => {
  const rows: readonly (readonly [string, RegExp])[] = [
    ['help nope', /^Error: unknown command 'nope'/],
    ['help vmcp nope', /^Error: unknown command 'nope'/],
    ['vmcp help nope', /^Error: unknown command 'nope'/],
    ['nope --help', /^Error: unknown command 'nope'/],
    ['help valdate', /^Error: unknown command 'valdate'\n\(Did you mean validate\?\)/],
  ]
  for (const [line, message] of rows) {
    const { code, stdout, stderr } = await runGatehouse(line.split(' '))
    t.match({ code, stdout }, { code: 2, stdout: '' }, line)
    t.match(stderr, message, line)
  }
  for (const [line, usage] of [
    ['help vmcp serve', 'gatehouse vmcp serve '],
    ['help proxy stdio', 'gatehouse proxy stdio '],
    ['help help', 'gatehouse '],
  ] as const)
    t.match(await runGatehouse(line.split(' ')), { code: 0, stdout: `Usage: ${usage}[options]` }, line)
})

await t.test(
  'output: a full disk is reported in one line, and exit codes of other errors stay the same',
  async (t) => {
    const skip = existsSync('/dev/full') ? false : 'this system has no /dev/full'
    await t.test('standard output and standard error', { skip }, async (t) => {
      const full = openSync('/dev/full', 'w')
      t.teardown(() => closeSync(full))
      const run = (args: readonly string[], stdio: StdioOptions) =>
        spawnSync(process.execPath, [program, ...args], { stdio, encoding: 'utf8' })
      const out = run(['version'], ['ignore', full, 'pipe'])
      t.equal(out.status, 1)
      t.match(out.stderr, /^Error: standard output: ENOSPC.*\n$/)
      t.equal(run(['validate', '-f', 'no-such-file'], ['ignore', 'pipe', full]).status, 2)
      const hooks = spawnSync(process.execPath, [hooksProgram, '--help'], {
        stdio: ['ignore', full, 'pipe'],
        encoding: 'utf8',
      })
      t.match(hooks, { status: 0, stderr: '' }, 'gatehouse-hooks exits with the same code and no output')
    })
  },
)

function sample(): { readonly program: CliCommand; readonly seen: unknown[] } {
  const seen: unknown[] = []
  const program = new CliCommand('gatehouse')
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .enablePositionalOptions()
  program
    .command('proxy')
    .argument('[name]')
    .option('--debug', 'log more')
    .option('--url <url>', 'where')
    .addOption(new Option('-o, --output <format>', 'how').choices(['text', 'json']))
    .action((name, options) => void seen.push([name, options]))
  program
    .command('run')
    .argument('[words...]')
    .option('--debug', 'log more')
    .option('--name <name>', 'name')
    .passThroughOptions()
    .action((words, options) => void seen.push([words, options]))
  return { program, seen }
}

t.test('switches: --name=true and --name=false are accepted as in Go programs', async (t) => {
  const rows: [string[], unknown][] = [
    [
      ['proxy', '--debug=true', 'a'],
      ['a', { debug: true }],
    ],
    [
      ['proxy', '--debug=TRUE', 'a'],
      ['a', { debug: true }],
    ],
    [
      ['proxy', '--debug=false', 'a'],
      ['a', {}],
    ],
    [
      ['proxy', '--url=true', 'a'],
      ['a', { url: 'true' }],
    ],
    [
      ['proxy', '--', '--debug=true'],
      ['--debug=true', {}],
    ],
    [
      ['run', '--debug=true', '--name', 'x', 'cmd', '--debug=true'],
      [['cmd', '--debug=true'], { debug: true, name: 'x' }],
    ],
  ]
  for (const [args, expected] of rows) {
    const { program, seen } = sample()
    await program.parseAsync(args, { from: 'user' })
    t.same(seen, [expected], args.join(' '))
  }
  for (const args of [
    ['proxy', '--debug=maybe'],
    ['proxy', '--unknown=true'],
  ]) {
    await t.rejects(sample().program.parseAsync(args, { from: 'user' }), args.join(' '))
  }
})

t.test('completion: commands, options, and values of options', async (t) => {
  const words = (...typed: string[]) => candidates(sample().program, typed).map(({ word }) => word)
  t.same(words('pr'), ['proxy'])
  t.same(words('proxy', '--d'), ['--debug'])
  t.same(words('proxy', '-o', ''), ['text', 'json'])
  t.same(words('proxy', '--output', 'j'), ['json'])
  t.same(words('proxy', '--output=j'), ['--output=json'])
  t.same(words('proxy', '--url', ''), [], 'a value without suggestions')
  t.same(words('proxy', '--', '--d'), [], 'after the end of options')
  t.same(words('nothing', ''), [])
})

await t.test('completion: the scripts work in the installed shells', async (t) => {
  const bash = await runGatehouse(['completion', 'bash'])
  t.equal(bash.code, 0)
  const typed = `gatehouse() { "${process.execPath}" "${program}" "$@"; }
${bash.stdout}
COMP_WORDS=(gatehouse client add --scope ''); COMP_CWORD=4; _gatehouse; echo "\${COMPREPLY[*]}"
COMP_WORDS=(gatehouse vali); COMP_CWORD=1; _gatehouse; echo "\${COMPREPLY[*]}"`
  const shown = spawnSync('bash', ['-c', typed], { encoding: 'utf8' })
  t.equal(shown.stdout, 'user project local\nvalidate\n', shown.stderr)
  for (const [shell, check] of [
    ['zsh', ['-n']],
    ['fish', ['--no-execute']],
  ] as const) {
    const { stdout } = await runGatehouse(['completion', shell])
    const file = join(t.testdir({ script: stdout }), 'script')
    const { error, status, stderr } = spawnSync(shell, [...check, file], { encoding: 'utf8' })
    if (error) t.pass(`${shell} is not installed on this machine: its script was NOT tested`)
    else t.equal(status, 0, stderr)
  }
})

await t.test('version: readable for users and for scripts', async (t) => {
  const json = await runGatehouse(['version', '-o', 'json'])
  t.match(JSON.parse(json.stdout), { version: /^\d+\.\d+\.\d+/, node: process.versions.node, platform: /\// })
  const text = await runGatehouse(['version'])
  t.match(text.stdout, /^gatehouse \d/)
  const wrong = await runGatehouse(['version', '-o', 'yaml'])
  t.equal(wrong.code, 2)
})
