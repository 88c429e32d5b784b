/**
 * `gatehouse doctor`: walks every hop between an MCP client and a server, and names the first that fails.
 */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { DoctorFlags } from './commands/doctor.ts'
import { collect } from '../../toolkit/terminal/options.ts'

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .summary('find out why a client cannot reach or log in to an MCP server')
    .description(
      'Walks every hop between a client and an MCP server in order (name, TLS, endpoint, challenge, well-known documents,\n' +
        'authorization server, login, session, streams) and names the first that fails, why, and the fix, for the\n' +
        'identity provider at hand. Reads only, unless --login or --register is given.',
    )
    .argument('[URL]', 'an MCP server')
    .option('-f, --filename <path>', 'manifests: validate them and dial what they name; repeatable', collect)
    .option(
      '--gateway <url>',
      'a running gateway: its health, readiness and backends, then as its clients see it',
    )
    .option('--client <name>', 'an MCP client, or its file: its entries, and the servers that they name')
    .option('--entry <name>', 'with --client: examine this entry only')
    .option('--redis <url>', 'the Redis of sessions: redis://host:port, or rediss:// for TLS')
    .option(
      '--cluster [context]',
      'what runs in a cluster: definitions, webhook, hooks, Metacontroller, resources',
    )
    .option('--password-file <path>', 'file with the password of Redis, - for standard input')
    .option(
      '--token-file <path>',
      'file with an access token, - for standard input; sent to the origin of the URL, --gateway or --entry only',
    )
    .option('--login', 'sign in for real with a browser on this machine, and check each step of it', false)
    .option('--no-browser', 'with --login: print the address in place of opening a browser')
    .option(
      '--login-timeout <seconds>',
      'with --login: how long the browser may take (default: 300)',
      seconds(1, 3600),
    )
    .option('--client-id <id>', 'a client that was registered by hand: is it known, with its redirect URI?')
    .option(
      '--client-secret-file <path>',
      'with --login: file with the secret of that client, - for standard input',
    )
    .option('--redirect-uri <uri>', 'of that client (default: http://localhost:8666/callback)')
    .option('--register', 'register a client, and delete it again', false)
    .option('--origin <origin>', 'of a client in a browser: does CORS let it in?')
    .option('--watch <seconds>', 'watch whether a quiet stream stays open', seconds(0, 600), 0)
    .option('--provider <id>', 'identity provider, when its issuer does not show it (own domains)')
    .option('--ca-file <path>', 'PEM certificates trusted beside the system’s')
    .option('--timeout <seconds>', 'limit of each request', seconds(1, 120), 10)
    .addOption(
      new Option('--fail-on <result>', 'what makes the exit code 1')
        .choices(['failed', 'warning'])
        .default('failed'),
    )
    .addOption(new Option('-o, --output <format>', 'how to report').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse doctor https://mcp.example.com/mcp\n' +
        '  gatehouse doctor https://mcp.example.com/mcp --token-file token.txt --watch 130\n' +
        '  gatehouse doctor --login https://mcp.example.com/mcp\n' +
        '  gatehouse doctor https://mcp.example.com/mcp --client-id 0oa1 --provider okta\n' +
        '  gatehouse doctor https://mcp.example.com/mcp -o json\n' +
        '  gatehouse doctor -f manifests/\n' +
        '  gatehouse doctor --gateway http://127.0.0.1:4483\n' +
        '  gatehouse doctor --client cursor\n' +
        '  gatehouse doctor --client cursor --entry github --token-file token.txt\n' +
        '  gatehouse doctor --cluster\n' +
        '  gatehouse doctor --redis rediss://redis.example.com:6380 --password-file password.txt\n' +
        '\nExit codes: 0 nothing failed, 1 a hop failed or could not be checked, 2 wrong usage or unreadable input.',
    )
    .action(async (url: string | undefined, flags: DoctorFlags, command: Command) => {
      const { doctor } = await import('./commands/doctor.ts')
      process.exitCode = await doctor(url, flags, command)
    })
}

function seconds(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}.`)
    }
    return value
  }
}
