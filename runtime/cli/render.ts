/**
 * `gatehouse render -f` prints the child objects that the hooks create from manifests, as YAML, offline.
 *
 * The hooks run against an in-memory cluster whose workloads are always ready, until nothing changes. The output is the
 * state that a healthy cluster converges to.
 */
import { writeYaml } from '../../schemas/yaml/index.ts'
import { type Command, Option } from 'commander'
import type { LocalObject } from '../toolkit/manifests/objects.ts'
import { settledCluster } from '../toolkit/local/cluster/settled-cluster.ts'
import { exitCode, print, printError, printJson } from '../toolkit/terminal/output.ts'
import { runtimeImage } from '../toolkit/terminal/self.ts'
import { forTerminal } from '../toolkit/terminal/plain-text.ts'
import { fieldsOf, isFields, lastAppliedAnnotation, listOf } from '../../schemas/index.ts'
import { collect } from '../toolkit/terminal/options.ts'

interface Options {
  readonly filename: string[]
  readonly output: 'yaml' | 'json'
  readonly image: string
  readonly status: boolean
}

export function addRenderCommand(program: Command): void {
  program
    .command('render')
    .summary('print the child objects that manifests produce, offline')
    .description(
      'Runs the reconcile hooks in memory and prints every object that they would create: Deployments, Services,\n' +
        'ConfigMaps, service accounts and roles. The output assumes that all workloads are ready.',
    )
    .requiredOption(
      '-f, --filename <path>',
      'manifest file, folder, or - for standard input; repeatable (required)',
      collect,
    )
    .addOption(new Option('-o, --output <format>', 'output format').choices(['yaml', 'json']).default('yaml'))
    .option('--image <ref>', 'runtime image for the pods', runtimeImage)
    .option('--status', 'print the input objects with their status instead of the child objects', false)
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse render -f manifests/examples/quickstart | kubectl apply --dry-run=client -f -\n' +
        '\nExit codes: 0 rendered, 1 a manifest is invalid or could not be rendered, 2 invalid usage or unreadable input.',
    )
    .action(async (options: Options) => {
      process.exitCode = await render(options)
    })
}

async function render(options: Options): Promise<number> {
  const { cluster, invalid } = await settledCluster(options.filename, options.image)
  if (!cluster) {
    printError(invalid)
    return exitCode.failed
  }
  const shown = cluster.objects.filter(
    (object) => (cluster.parentOf(object) === undefined) === options.status,
  )
  const clean = options.status ? shown.map(declared) : shown.map(desired)
  if (options.output === 'json') printJson({ apiVersion: 'v1', kind: 'List', items: clean })
  else if (clean.length > 0) print(clean.map((object) => `---\n${writeYaml(object)}`).join(''))
  const failed = cluster.objects.filter((object) => cluster.hasChildren(object)).flatMap(failureOf)
  for (const text of failed) printError(text)
  return failed.length > 0 ? exitCode.failed : exitCode.ok
}

/** Returns the error for a resource whose hooks render no children, or an empty list. */
function failureOf({ kind, metadata, status }: LocalObject): readonly string[] {
  const conditions = listOf(fieldsOf(status)['conditions']).filter(isFields)
  const failed = conditions.find(
    ({ type, status: is, reason }) =>
      is === 'True' && (type === 'Stalled' || (type === 'Reconciling' && reason !== 'RolloutInProgress')),
  )
  if (!failed) return []
  const name = [metadata.namespace ?? 'default', metadata.name].join('/')
  return [forTerminal(`${kind} ${name}: not rendered: ${String(failed['message'])}`)]
}

/** Returns the object as the hook rendered it, without fields that the in-memory cluster added. */
function desired(object: LocalObject): LocalObject {
  const text = object.metadata.annotations?.[lastAppliedAnnotation]
  return text ? (JSON.parse(text) as LocalObject) : object
}

function declared(object: LocalObject): LocalObject {
  const { uid: _uid, resourceVersion: _version, creationTimestamp: _created, ...metadata } = object.metadata
  return { ...object, metadata }
}
