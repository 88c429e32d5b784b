import { type Command, InvalidArgumentError, Option } from 'commander'
import { type DirectoryName, directoryNames } from './directory/model.ts'
import type { DoctorFlags } from './commands/doctor.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { runningNames } from '../../toolkit/targets/running.ts'
import { collect } from '../../toolkit/terminal/options.ts'

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .summary('find out why a client cannot reach or log in to an MCP server')
    .description(
      'Checks every hop between a client and an MCP server in order (name, TLS, endpoint, challenge, well-known documents,\n' +
        'authorization server, login, session, streams). Prints the first failure, its cause, and a fix that fits the\n' +
        'identity provider. Read-only, unless --login or --register is set.',
    )
    .addArgument(
      new NamedArgument(
        '[TARGET]',
        'URL of an MCP server, the name of a server started by "gatehouse up", "run" or "dev", or a resource in the current cluster',
        runningNames,
      ),
    )
    .option(
      '-f, --filename <path>',
      'check manifests, and the servers and issuers in them; repeatable',
      collect,
    )
    .option(
      '--gateway <url>',
      'check a running gateway: health, readiness, backends, then its endpoint as a client',
    )
    .option(
      '--client <name>',
      'check the entries in the configuration of an MCP client (name or file), and their servers',
    )
    .option('--entry <name>', 'with --client: check only this entry')
    .option(
      '--redis <url>',
      'check the Redis server that stores sessions: redis://host:port, or rediss:// for TLS',
    )
    .option('--cluster [context]', 'check a cluster: definitions, webhook, hooks, Metacontroller, resources')
    .option('--password-file <path>', 'file that contains the Redis password, or - for standard input')
    .option(
      '--token-file <path>',
      'file that contains an access token, or - for standard input; the token is sent only to the origin of the URL, --gateway or --entry',
    )
    .option('--login', 'log in with a browser on this machine, and check each step', false)
    .option('--no-browser', 'with --login: print the address instead of opening a browser')
    .option(
      '--login-timeout <seconds>',
      'with --login: time limit for the login in the browser (default: 300)',
      secondsParser(1, 3600),
    )
    .option('--client-id <id>', 'check that this client is registered, with its redirect URI')
    .option(
      '--client-secret-file <path>',
      'with --login: file that contains the client secret, or - for standard input',
    )
    .option('--redirect-uri <uri>', 'the client’s redirect URI (default: http://localhost:8666/callback)')
    .option('--register', 'register a client and delete it afterwards', false)
    .option('--origin <origin>', 'check CORS for a browser client with this origin')
    .option(
      '--watch <seconds>',
      'check that an idle stream stays open for this long',
      secondsParser(0, 600),
      0,
    )
    .option(
      '--directory <names>',
      'check the requirements of these directories, separated by commas: claude, openai',
      directoriesParser,
    )
    .option('--provider <id>', 'identity provider, if it uses a custom domain')
    .option('--ca-file <path>', 'file with PEM certificates to trust in addition to the system’s')
    .option('--timeout <seconds>', 'time limit for each request', secondsParser(1, 120), 10)
    .addOption(
      new Option('--fail-on <result>', 'lowest result level that causes exit code 1')
        .choices(['failed', 'warning'])
        .default('failed'),
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse doctor https://mcp.example.com/mcp\n' +
        '  gatehouse doctor https://mcp.example.com/mcp --token-file token.txt --watch 130\n' +
        '  gatehouse doctor --login https://mcp.example.com/mcp\n' +
        '  gatehouse doctor https://mcp.example.com/mcp --client-id 0oa1 --provider okta\n' +
        '  gatehouse doctor https://mcp.example.com/mcp -o json\n' +
        '  gatehouse doctor https://mcp.example.com/mcp --directory claude,openai\n' +
        '  gatehouse doctor -f manifests/\n' +
        '  gatehouse doctor gatehouse                       a server that gatehouse run started\n' +
        '  gatehouse doctor --gateway http://127.0.0.1:4483\n' +
        '  gatehouse doctor --client cursor\n' +
        '  gatehouse doctor --client cursor --entry github --token-file token.txt\n' +
        '  gatehouse doctor --cluster\n' +
        '  gatehouse doctor --redis rediss://redis.example.com:6380 --password-file password.txt\n' +
        '\nExit codes: 0 no failures, 1 a hop failed or could not be checked, 2 invalid usage or unreadable input.',
    )
    .action(async (url: string | undefined, flags: DoctorFlags, command: Command) => {
      const { doctor } = await import('./commands/doctor.ts')
      process.exitCode = await doctor(url, flags, command)
    })
}

function directoriesParser(text: string): readonly DirectoryName[] {
  const names = text.split(',').map((name) => name.trim())
  const known = directoryNames.filter((name) => names.includes(name))
  if (known.length !== new Set(names).size)
    throw new InvalidArgumentError(`must be a list of ${directoryNames.join(', ')}.`)
  return known
}

function secondsParser(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}.`)
    }
    return value
  }
}
