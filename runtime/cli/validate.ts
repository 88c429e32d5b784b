/** `gatehouse validate -f` checks manifests offline, using the admission webhook's code. */
import { type Command, Option } from 'commander'
import {
  type CheckedManifest,
  checkManifests,
  describeUnchecked,
  describeViolations,
  isOurs,
  nameOf,
} from '../toolkit/manifests/check.ts'
import { generatedNames, kustomizationSets } from '../toolkit/manifests/kustomizations.ts'
import { standardText } from '../toolkit/terminal/input.ts'
import { readManifests } from '../toolkit/manifests/read.ts'
import { type ReportFormat, reportFormats } from '../toolkit/manifests/report.ts'
import { collect } from '../toolkit/terminal/options.ts'
import { exitCode, print, printError } from '../toolkit/terminal/output.ts'

interface Options {
  readonly filename: string[]
  readonly output: ReportFormat | 'text'
}

export function addValidateCommand(program: Command): void {
  program
    .command('validate')
    .summary('check manifests offline')
    .description(
      'Checks manifests and their references without a cluster, using the admission webhook’s code:\n' +
        '- A missing object is an error if the input contains other objects of its kind, otherwise a warning.\n' +
        '- A missing key in a Secret or ConfigMap in the input is an error.\n' +
        '- Missing Secrets and ConfigMaps are only counted, with a warning if the input contains one with a similar name.\n' +
        'Each folder with a kustomization is checked as a separate set. Documents in other API groups are skipped.',
    )
    .requiredOption(
      '-f, --filename <path>',
      'manifest file, folder, or - for standard input; repeatable (required)',
      collect,
    )
    .addOption(
      new Option('-o, --output <format>', 'output format')
        .choices(['text', ...Object.keys(reportFormats)])
        .default('text'),
    )
    .addHelpText(
      'after',
      '\nExamples:\n  gatehouse validate -f manifests/\n  gatehouse validate -f manifests/ -o sarif > gatehouse.sarif\n  kustomize build . | gatehouse validate -f -\n' +
        '\nExit codes: 0 all valid, 1 problems found, 2 invalid usage or unreadable input.',
    )
    .action(async (options: Options) => {
      process.exitCode = await validate(options)
    })
}

async function validate(options: Options): Promise<number> {
  const { referenceCheck, validateResource } = await import('../../hooks/index.ts')
  const manifests = readManifests(options.filename, standardText)
  const checked = checkManifests(manifests, {
    validate: validateResource,
    references: referenceCheck,
    setsOf: kustomizationSets(options.filename),
    generated: generatedNames(options.filename),
  })
  const invalid = checked.filter(({ violations }) => violations.length > 0)
  if (options.output === 'text') printFindings(checked)
  else print(reportFormats[options.output](checked))
  const note = describeUnchecked(checked)
  if (note !== undefined) printError(`note: ${note}`)
  const code = invalid.length > 0 ? exitCode.failed : exitCode.ok
  if (options.output !== 'text') return code
  const foreign = manifests.length - manifests.filter(isOurs).length
  const skipped = foreign > 0 ? `, ${foreign} in other API groups skipped` : ''
  print(`${checked.length - invalid.length} valid, ${invalid.length} invalid${skipped}`)
  return code
}

function printFindings(checked: readonly CheckedManifest[]): void {
  for (const { manifest, warnings } of checked) {
    for (const warning of warnings) {
      printError(`${manifest.file}:${manifest.line}: ${nameOf(manifest)}: warning: ${warning}`)
    }
  }
  const violations = describeViolations(checked)
  if (violations !== '') printError(violations)
}
