/** `gatehouse import toolhive`: documents of ToolHive, from files or from a cluster, as ours. */
import { type Command, Option } from 'commander'
import type { ToolhiveOptions } from './import.ts'
import { refuseIdle, collect } from '../../toolkit/terminal/options.ts'

export function addImportToolhiveCommand(parent: Command): void {
  parent
    .command('toolhive')
    .summary('turn manifests, vmcp files and run configurations of ToolHive into manifests')
    .description(
      'Converts objects of toolhive.stacklok.dev (v1alpha1 and v1beta1), configuration files of its virtual server,\n' +
        'run configurations (thv export) and files of policies, and says field by field what differs.\n' +
        'Objects of other API groups stay as they are. An object whose guard has no counterpart is not written.',
    )
    .option('-f, --filename <path>', 'file, folder or - for standard input; repeatable', collect, [])
    .option('--context [name]', 'objects of the cluster of this context, or of the current one')
    .option('-n, --namespace <name>', 'only this namespace of the cluster')
    .option('--save <folder>', 'write the manifests there')
    .option('--force', 'replace files that are there', false)
    .addOption(
      new Option('-o, --output <format>', 'yaml prints the manifests, and the report to standard error')
        .choices(['text', 'json', 'yaml'])
        .default('text'),
    )
    .option(
      '--tool <name=backend.tool>',
      'what steps of workflows mean by a tool without its backend; repeatable',
      collect,
      [],
    )
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse import toolhive -f manifests/                     what would become of it\n' +
        '  gatehouse import toolhive -f manifests/ --save gatehouse/   write manifests, then: gatehouse validate -f gatehouse/\n' +
        '  gatehouse import toolhive --context -n tools -o yaml | kubectl apply --dry-run=server -f -\n' +
        '\nExit codes: 0 all converted, 1 something is not, 2 wrong usage or unreadable input.',
    )
    .action(async (options: ToolhiveOptions, command: Command) => {
      refuseIdle(command, [['force', options.save !== undefined, 'is for --save']])
      const { importToolhive } = await import('./import.ts')
      process.exitCode = await importToolhive(options)
    })
}
