/** Commands and flags: every flag either has an effect or is rejected with exit code 2 and the reason. */
import { spawnSync } from 'node:child_process'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { argumentsFrom } from '../../../runtime/tools/shell/arguments.ts'
import { freePort, program as gatehouse, runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'

t.setTimeout(400_000)

const quickstart = 'manifests/examples/quickstart'
const closed = 'http://127.0.0.1:1/mcp'
const program = 'process.stdin.resume()'

await t.test('--debug before a command that writes no log is rejected', async (t) => {
  const rows: readonly (readonly string[])[] = [
    ['validate', '-f', quickstart],
    ['import', 'toolhive', '-f', quickstart],
    ['client', 'list'],
    ['doctor', closed],
    ['vmcp', 'validate', '-c', 'x'],
    ['version'],
  ]
  for (const args of rows) {
    const { code, stdout, stderr } = await runGatehouse(['--debug', ...args])
    t.match(
      { code, stdout, stderr },
      { code: 2, stdout: '', stderr: /--debug: has no effect with "/ },
      args.join(' '),
    )
  }
})

await t.test('options that have no effect next to other options are rejected by name', async (t) => {
  const rows: readonly (readonly [string, string])[] = [
    ['import --group x toolhive -f x', '--group: has no effect with "import toolhive"'],
    ['import toolhive -f x --force', '--force: has no effect without --save'],
    ['import --force', '--force: has no effect without --save'],
    ['import --as cursor', '--as: requires a FILE'],
    ['import --oidc-config x', '--oidc-config: requires --audience'],
    ['import --audience x', '--audience: requires --oidc-config'],
    ['run --force -- x', '--force: has no effect without --save'],
    ['run --log-format json -- x', '--log-format: has no effect without --verbose'],
    [`dev -f ${quickstart} --log-format json`, '--log-format: has no effect without --verbose'],
    [`tools list ${closed} -n x`, '--namespace: applies only to the name of a resource in the cluster'],
    ['tools call --remote-auth x -- true', '--remote-auth: applies to a TARGET, not to a command after --'],
    [
      'resources list --remote-auth-bearer-token-file x -- true',
      '--remote-auth-bearer-token-file: applies to a TARGET, not to a command after --',
    ],
    ['prompts get -n x y -- true', '--namespace: applies only to the name of a resource in the cluster'],
    ['proxy --host x stdio http://127.0.0.1:1/', '--host: has no effect with "proxy stdio"'],
    [
      'proxy stdio -n x http://127.0.0.1:1/',
      '--namespace: applies only to a resource name, but TARGET is a URL',
    ],
    [
      'proxy tunnel -n x http://127.0.0.1:1 y --tunnel-provider ssh',
      '--namespace: applies only to a resource name, but TARGET is a URL',
    ],
    ['vmcp serve -c x --group y', '--group: has no effect with --config'],
    ['vmcp serve -c x --backend y=http://a', '--backend: has no effect with --config'],
    [
      'client add vscode --scope project --profile work',
      "option '--profile <id>' cannot be used with option '--scope <scope>'",
    ],
    ['client remove vscode --create', "unknown option '--create'"],
    ['policy explain -p x --tool y --original z', '--original: has no effect without --backend'],
  ]
  for (const [line, message] of rows) {
    const { code, stdout, stderr } = await runGatehouse(line.split(' '))
    t.match({ code, stdout }, { code: 2, stdout: '' }, line)
    t.match(stderr, `Error: ${message}`, line)
  }
})

await t.test('doctor: each kind of target accepts only its own options', async (t) => {
  const values: Readonly<Record<string, readonly string[]>> = {
    '--token-file': ['x'],
    '--client-id': ['x'],
    '--redirect-uri': ['http://x/'],
    '--register': [],
    '--origin': ['http://x'],
    '--watch': ['1'],
    '--provider': ['okta'],
    '--ca-file': ['x'],
    '--timeout': ['1'],
    '--password-file': ['x'],
    '--entry': ['x'],
  }
  const login = ['--token-file', '--client-id', '--redirect-uri', '--register', '--origin', '--watch']
  const rows: readonly (readonly [readonly string[], readonly string[]])[] = [
    [[closed], ['--password-file', '--entry']],
    [
      ['--gateway', 'http://127.0.0.1:1'],
      ['--password-file', '--entry'],
    ],
    [
      ['-f', quickstart],
      [...login, '--password-file', '--entry'],
    ],
    [['--client', 'cursor'], ['--password-file']],
    [
      ['--redis', 'redis://127.0.0.1:1'],
      [...login, '--provider', '--entry'],
    ],
    [['--cluster'], Object.keys(values)],
  ]
  for (const [target, refused] of rows) {
    const all = refused.flatMap((flag) => [flag, ...(values[flag] ?? [])])
    const { code, stderr } = await runGatehouse(['doctor', ...target, ...all])
    t.equal(code, 2, target.join(' '))
    const named = stderr
      .split('\n')
      .flatMap((line) => /(--[a-z-]+): has no effect with/.exec(line)?.[1] ?? [])
    t.same(named.sort(), [...refused].sort(), `${target.join(' ')}: all of them at once`)
  }
  const alone = await runGatehouse(['doctor', closed, '--redirect-uri', 'http://x/'])
  t.match(alone, {
    code: 2,
    stderr: /--redirect-uri: has no effect without --client-id, --register or --login/,
  })
})

/** Commands that write a log, each with a log line at a given level. */
const logging: readonly (readonly [readonly string[], RegExp])[] = [
  [['proxy', '--target-uri', 'http://127.0.0.1:1', '--port', '0', 'x'], /no --oidc/],
  [['vmcp', 'serve', '--group', 'g', '--backend', 'a=http://127.0.0.1:1/mcp', '--port', '0'], /listening/],
  [['run', '-v', '--url', closed, '--start-timeout', '60'], /virtual MCP server listening/],
]

await t.test('--log-format and --log-level work for commands that run servers', async (t) => {
  t.setTimeout(150_000)
  for (const [args, line] of logging) {
    const port = args[0] === 'run' ? ['--port', String(await freePort())] : []
    const json = startGatehouse([...args, ...port, '--log-format', 'json', '--log-level', 'debug'])
    t.teardown(() => json.interrupt())
    await json.waitFor(new RegExp(`\\{"level":"[a-z]+","time":"[^\\n]*(?:${line.source})`))
    await json.interrupt()
    const text = startGatehouse([...args, ...port, '--log-format', 'text'])
    t.teardown(() => text.interrupt())
    await text.waitFor(new RegExp(`^(?:\\[[^\\]]+\\] )?(?!\\[|\\{|Trans)[^{\\n]*(?:${line.source})`, 'm'))
    await text.interrupt()
    t.notMatch(text.output(), '{"level"', args.join(' '))
    const wrong = await runGatehouse([...args, '--log-level', 'loud'])
    t.match(wrong, { code: 2, stderr: /Allowed choices are/ })
  }
})

await t.test('--debug before a command that runs something sets its log to debug level', async (t) => {
  const debug = /"level":"debug"|\bDEBUG\b/i
  const relayed = startGatehouse([
    '--debug',
    'run',
    '--port',
    String(await freePort()),
    '--',
    process.execPath,
    '-e',
    program,
  ])
  t.teardown(() => relayed.interrupt())
  await relayed.waitFor(debug)
  const quiet = await runGatehouse(['tools', 'list', closed])
  const shell = await runGatehouse(['--debug', 'tools', 'list', closed])
  t.notMatch(quiet.stderr, debug)
  t.match(shell.stderr, debug)
})

await t.test('an unusable file or home folder causes an error that names the flag', async (t) => {
  const folder = t.testdir({})
  const absent = join(folder, 'absent.json')
  await t.rejects(
    argumentsFrom([], { argsFile: absent }, async () => ({})),
    {
      code: 'INVALID_CONFIG',
      message: `--args-file: cannot read ${absent}: file not found`,
    },
  )
  const { KUBECONFIG: _kubeconfig, ...env } = process.env
  const status = spawnSync(process.execPath, [gatehouse, 'cluster', 'status'], {
    env: { ...env, HOME: folder },
    encoding: 'utf8',
  })
  t.match(status, {
    status: 2,
    stderr:
      'Error: --kubeconfig: no kubeconfig found; set --kubeconfig or the environment variable KUBECONFIG\n',
  })
  const list = spawnSync(process.execPath, [gatehouse, 'client', 'list', '--all', '-o', 'json'], {
    cwd: folder,
    env: { ...env, HOME: '', XDG_CONFIG_HOME: '' },
    encoding: 'utf8',
  })
  t.match(list.stdout, join(userInfo().homedir, '.cursor'), 'an empty HOME counts as unset')
})
