/** Adds `gatehouse cluster`, and adds the same commands to the kubectl plugin. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ConnectFlags } from './connect.ts'
import type { LogsFlags } from './logs.ts'
import type { StatusFlags } from './status.ts'
import type { WhyFlags } from './why.ts'
import { parsePort } from '../../toolkit/terminal/options.ts'

export const clusterDescription =
  'Shows the Gatehouse resources in the current kubeconfig’s cluster, and explains why a resource is not ready.\n' +
  'Read-only, with the permissions of the kubeconfig’s user. To check the installation itself, use gatehouse doctor --cluster.'

export function addClusterCommand(program: Command): void {
  const cluster = program
    .command('cluster')
    .summary('show the Gatehouse resources in a cluster, and explain why a resource is not ready')
    .description(`${clusterDescription}\nAlso available as kubectl gatehouse, if the plugin is installed.`)
  addClusterCommands(cluster)
}

/** Adds the commands to `gatehouse cluster`, or to the plugin. */
export function addClusterCommands(parent: Command): void {
  addStatus(parent)
  addWhy(parent)
  addLogs(parent)
  addConnect(parent)
}

/** Returns the command as the user calls it, for examples: `gatehouse cluster` or `kubectl gatehouse`. */
function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}

function withClusterFlags(command: Command): Command {
  return command
    .option('-n, --namespace <name>', 'namespace (default: the context’s namespace)')
    .option('--context <name>', 'kubeconfig context (default: the current one)')
    .option('--kubeconfig <path>', 'kubeconfig file (default: the one that kubectl uses)')
}

function outputOption(): Option {
  return new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text')
}

function addStatus(parent: Command): void {
  const name = nameOf(parent)
  withClusterFlags(
    parent
      .command('status')
      .summary('list the objects, and show which are not ready and why')
      .description(
        'Lists all gatehouse.dev objects with their readiness, problems, and rollouts that are in progress or stalled. The\n' +
          'last line is a summary.',
      )
      .argument(
        '[KIND/NAME...]',
        'objects, or all objects of a KIND; accepts short names such as vmcp and mcps',
      ),
  )
    .option('-A, --all-namespaces', 'list the objects in all namespaces', false)
    .addOption(outputOption())
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} status -A\n  ${name} status -n team vmcp/tools mcps\n` +
        '\nExit codes: 0 everything is ready, 1 an object is not ready, has a stalled rollout or cannot be read, 2 invalid usage,\n' +
        '3 the cluster rejected the credentials.',
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
      .summary('explain why an object is not ready, and what to do next')
      .description(
        'Checks one object in causal order: its spec, its references (only the names of Secrets), its workloads and pods,\n' +
          'Warning Events, and the backends that the running server reports. Prints one cause and the next step.',
      )
      .argument('<KIND/NAME>', 'object; accepts short names such as vmcp and mcps'),
  )
    .addOption(outputOption())
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} why vmcp/tools\n  ${name} why -n team mcps/github -o json\n` +
        '\nExit codes: 0 no problem found, 1 a problem, or the object does not exist, 2 invalid usage, 3 the cluster rejected the\n' +
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
      .summary('print the logs of all of an object’s pods')
      .description(
        'Uses kubectl to print the logs of every pod and container of the object’s workloads. Each line starts with its pod\n' +
          'and container.',
      )
      .argument('<KIND/NAME>', 'object; accepts short names such as vmcp and mcps'),
  )
    .option('-f, --follow', 'keep printing new lines until interrupted', false)
    .option('--since <duration>', 'only lines newer than this duration, such as 10m or 2h')
    .option('--tail <lines>', 'number of most recent lines for each container (default: all)', parseLineCount)
    .option('-c, --container <name>', 'only this container (default: all)')
    .option('--server', 'for an MCPServer: only the server, without the proxy in front of it', false)
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} logs vmcp/tools --since 10m\n  ${name} logs mcps/github --server -f\n` +
        '\nExit codes: the exit code of kubectl; 2 invalid usage, 3 the cluster rejected the credentials.',
    )
    .action(async (word: string, flags: LogsFlags) => {
      const { clusterLogs } = await import('./logs.ts')
      process.exitCode = await clusterLogs(word, flags)
    })
}

function parseLineCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('must be a whole number of lines.')
  return Number(text)
}

function addConnect(parent: Command): void {
  const name = nameOf(parent)
  withClusterFlags(
    parent
      .command('connect')
      .summary('forward a local port to an object')
      .description(
        'Forwards a loopback port to the object’s Service with kubectl until interrupted, and prints the URL for MCP\n' +
          'clients.',
      )
      .argument('<NAME>', 'a VirtualMCPServer, or KIND/NAME of another server'),
  )
    .option(
      '--port <number>',
      'port on 127.0.0.1, or 0 for a free port',
      (text: string) => (text === '0' ? 0 : parsePort(text)),
      4483,
    )
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} connect tools\n  ${name} connect -n team mcps/github --port 0\n` +
        '\nExit codes: 0 interrupted, otherwise the exit code of kubectl; 2 invalid usage, 3 the cluster rejected the credentials.',
    )
    .action(async (word: string, flags: ConnectFlags) => {
      const { clusterConnect } = await import('./connect.ts')
      process.exitCode = await clusterConnect(word, flags, name)
    })
}
