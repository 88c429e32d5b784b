/** `gatehouse cluster`, and the kubectl plugin that is the same: what runs in a cluster, and why something does not. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ConnectFlags } from './connect.ts'
import type { LogsFlags } from './logs.ts'
import type { StatusFlags } from './status.ts'
import type { WhyFlags } from './why.ts'
import { parsePort } from '../../toolkit/terminal/options.ts'

export const clusterDescription =
  'What runs in the cluster of the current kubeconfig, and why something does not. Reads only, with the rights of the\n' +
  'kubeconfig’s user. Whether the installation itself is well: gatehouse doctor --cluster.'

export function addClusterCommand(program: Command): void {
  const cluster = program
    .command('cluster')
    .summary('what runs in a cluster, and why something does not')
    .description(`${clusterDescription}\nThe same as kubectl gatehouse, where the plugin is installed.`)
  addClusterCommands(cluster)
}

/** Below `gatehouse cluster`, or below the plugin itself. */
export function addClusterCommands(parent: Command): void {
  addStatus(parent)
  addWhy(parent)
  addLogs(parent)
  addConnect(parent)
}

/** As the command is called, for examples: `gatehouse cluster` or `kubectl gatehouse`. */
function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}

function withClusterFlags(command: Command): Command {
  return command
    .option('-n, --namespace <name>', 'namespace (default: that of the context)')
    .option('--context <name>', 'context of the kubeconfig (default: the current one)')
    .option('--kubeconfig <path>', 'the kubeconfig (default: as kubectl finds it)')
}

function outputOption(): Option {
  return new Option('-o, --output <format>', 'how to report').choices(['text', 'json']).default('text')
}

function addStatus(parent: Command): void {
  const name = nameOf(parent)
  withClusterFlags(
    parent
      .command('status')
      .summary('one line per object: ready or not, and why')
      .description(
        'Lists all objects of gatehouse.dev: ready or not, the reason, and whether a rollout is in progress or stalled. The\n' +
          'last line counts them.',
      )
      .argument(
        '[KIND/NAME...]',
        'these objects, or all of a KIND; short names such as vmcp and mcps are known',
      ),
  )
    .option('-A, --all-namespaces', 'of all namespaces', false)
    .addOption(outputOption())
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} status -A\n  ${name} status -n team vmcp/tools mcps\n` +
        '\nExit codes: 0 everything is ready, 1 something is not ready, has a stalled rollout or cannot be read, 2 wrong usage,\n' +
        '3 the cluster refuses the credentials.',
    )
    .action(async (words: string[], flags: StatusFlags) => {
      const { clusterStatus } = await import('./status.ts')
      process.exitCode = await clusterStatus(words, flags)
    })
}

function addWhy(parent: Command): void {
  const name = nameOf(parent)
  withClusterFlags(
    parent
      .command('why')
      .summary('why one object is not ready, and the next step')
      .description(
        'Looks at one object in order of cause: its spec, what it refers to (of Secrets the name only), its workloads and\n' +
          'pods, Warning Events, and the backends that the running server reports. Ends with one cause and the next step.',
      )
      .argument('<KIND/NAME>', 'the object; short names such as vmcp and mcps are known'),
  )
    .addOption(outputOption())
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} why vmcp/tools\n  ${name} why -n team mcps/github -o json\n` +
        '\nExit codes: 0 nothing is wrong, 1 something is, or there is no such object, 2 wrong usage, 3 the cluster refuses the\n' +
        'credentials.',
    )
    .action(async (word: string, flags: WhyFlags) => {
      const { clusterWhy } = await import('./why.ts')
      process.exitCode = await clusterWhy(word, flags, name)
    })
}

function addLogs(parent: Command): void {
  const name = nameOf(parent)
  withClusterFlags(
    parent
      .command('logs')
      .summary('the logs of all pods of one object')
      .description(
        'Prints the logs of every pod and container of the object’s workloads through kubectl, each line with the pod and\n' +
          'container that it is from.',
      )
      .argument('<KIND/NAME>', 'the object; short names such as vmcp and mcps are known'),
  )
    .option('-f, --follow', 'go on with what is printed from now on', false)
    .option('--since <duration>', 'newer than this, such as 10m or 2h')
    .option('--tail <lines>', 'of each container, so many of the last lines (default: all)', lines)
    .option('-c, --container <name>', 'of this container only (default: all)')
    .option('--server', 'of an MCPServer: of the server itself, and not of the proxy before it', false)
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} logs vmcp/tools --since 10m\n  ${name} logs mcps/github --server -f\n` +
        '\nExit codes: that of kubectl; 2 wrong usage, 3 the cluster refuses the credentials.',
    )
    .action(async (word: string, flags: LogsFlags) => {
      const { clusterLogs } = await import('./logs.ts')
      process.exitCode = await clusterLogs(word, flags)
    })
}

function lines(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('must be a whole number of lines.')
  return Number(text)
}

function addConnect(parent: Command): void {
  const name = nameOf(parent)
  withClusterFlags(
    parent
      .command('connect')
      .summary('forward a port of this machine to an object')
      .description(
        'Forwards a port of the loopback interface to the object’s Service through kubectl until it is interrupted, and\n' +
          'prints the URL for MCP clients.',
      )
      .argument('<NAME>', 'a VirtualMCPServer, or KIND/NAME of another server'),
  )
    .option(
      '--port <number>',
      'port on 127.0.0.1; 0 takes a free one',
      (text: string) => (text === '0' ? 0 : parsePort(text)),
      4483,
    )
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} connect tools\n  ${name} connect -n team mcps/github --port 0\n` +
        '\nExit codes: 0 it was interrupted, else that of kubectl; 2 wrong usage, 3 the cluster refuses the credentials.',
    )
    .action(async (word: string, flags: ConnectFlags) => {
      const { clusterConnect } = await import('./connect.ts')
      process.exitCode = await clusterConnect(word, flags, name)
    })
}
