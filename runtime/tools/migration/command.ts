/** `gatehouse import toolhive` converts ToolHive documents, from files or from a cluster. */
import { type Command, Option } from 'commander'
import type { ToolhiveOptions } from './import.ts'
import { refuseIdle, collect } from '../../toolkit/terminal/options.ts'

export function addImportToolhiveCommand(parent: Command): void {
  parent
    .command('toolhive')
    .summary('convert ToolHive manifests, vmcp files and run configurations to Gatehouse manifests')
    .description(
      'Converts toolhive.stacklok.dev objects (v1alpha1 and v1beta1), ToolHive’s virtual server configuration files,\n' +
        'run configurations (thv export) and policy files. Reports the differences field by field. Objects in other API\n' +
        'groups stay unchanged. An object is not written if one of its protections (policies, for example) has no counterpart.',
    )
    .option('-f, --filename <path>', 'file, folder, or - for standard input; repeatable', collect, [])
    .option(
      '--context [name]',
      'read the objects from this context’s cluster; without a name, from the current context’s cluster',
    )
    .option('-n, --namespace <name>', 'with --context: read only this namespace')
    .option('--save <folder>', 'write the manifests to this folder')
    .option('--force', 'with --save: replace existing files', false)
    .addOption(
      new Option(
        '-o, --output <format>',
        'output format; yaml prints the manifests, with the report on standard error',
      )
        .choices(['text', 'json', 'yaml'])
        .default('text'),
    )
    .option(
      '--tool <name=backend.tool>',
      'backend and tool to use when a workflow step names a tool without a backend; repeatable',
      collect,
      [],
    )
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse import toolhive -f manifests/                     show how it converts\n' +
        '  gatehouse import toolhive -f manifests/ --save gatehouse/   write manifests, then: gatehouse validate -f gatehouse/\n' +
        '  gatehouse import toolhive --context -n tools -o yaml | kubectl apply --dry-run=server -f -\n' +
        '\nExit codes: 0 all converted, 1 at least one was not, 2 invalid usage or unreadable input.',
    )
    .action(async (options: ToolhiveOptions, command: Command) => {
      refuseIdle(command, [['force', options.save !== undefined, 'has no effect without --save']])
      const { importToolhive } = await import('./import.ts')
      process.exitCode = await importToolhive(options)
    })
}
