/**
 * What to run for one workload of the local cluster: which command, with which environment, on which port.
 *
 * A container of the runtime image runs this very program with the container's own arguments. Any other container runs
 * the command in the annotation `gatehouse.dev/local-command` of the resource that owns it, in place of image and args;
 * `$(NAME)` in it stands for a variable of the container.
 */
import { join } from 'node:path'
import { hashOf, localCommandAnnotation } from '../../../schemas/index.ts'
import { vmcpEnvironment } from '../../config/index.ts'
import type { LocalObject } from '../manifests/objects.ts'
import type { Addresses } from './addresses.ts'
import { splitCommand } from './command-line.ts'
import { type LocalContainer, podTemplateOf, expand } from './pods.ts'
import { environmentOf, localPaths, type Mounts, writeVolumes } from './volumes.ts'

export interface ProcessPlan {
  readonly argv: readonly string[]
  /** How many of the words start this very program; 0: it is another one. */
  readonly ownWords: number
  readonly env: Readonly<Record<string, string>>
  readonly port: number
  /** Set for the port that the user chooses. */
  readonly isEntrance: boolean
  /** Path that responds with 200 when ready; undefined: a TCP connection is enough. */
  readonly readyPath: string | undefined
  /** Set when the command speaks MCP on stdin and stdout and must be bridged to HTTP on `port`. */
  readonly stdio: boolean
  /** How such a command is offered. */
  readonly bridgeMode: 'streamable-http' | 'sse'
  /** Where the web console of this server is opened, with its launch token; undefined when it has none. */
  readonly consoleUrl: string | undefined
  /** Changes when the process must be started again; a changed file alone does not. */
  readonly fingerprint: string
}

export interface PlanContext {
  readonly objects: readonly LocalObject[]
  readonly addresses: Addresses
  readonly folder: string
  readonly runtimeImage: string
  /** Command that runs this program: `node path/to/gatehouse`. */
  readonly self: readonly string[]
  /** Folder for locks of backends that have none. */
  readonly pinFirst?: string | undefined
  readonly baseEnv: Readonly<Record<string, string>>
  /** Whoever shows it may use the consoles of this session. */
  readonly consoleToken: string
  /** Files and folders with the manifests, absolute; none: there are no files to write approvals into. */
  readonly manifests: readonly string[]
}

/** Stands for the port of the console, which no container has in this mode. */
const consolePort = 0

/** The plan of one Deployment or StatefulSet; a string says why it cannot be run here. */
export async function planOf(
  workload: LocalObject,
  parent: LocalObject,
  context: PlanContext,
): Promise<ProcessPlan | string> {
  const template = podTemplateOf(workload)
  const container = template?.spec.containers[0]
  if (!template || !container) return 'it has no container'
  const port = await context.addresses.portOf(workload, container.ports?.[0]?.containerPort ?? 8080, {
    isEntrance: parent.kind === 'VirtualMCPServer',
  })
  const localise = (text: string) => context.addresses.localise(text, context.objects)
  const mounts = writeVolumes(template, container, {
    namespace: workload.metadata.namespace ?? 'default',
    objects: context.objects,
    folder: context.folder,
    localise,
  })
  const own = environmentOf(container, { object: workload, objects: context.objects })
  const env = Object.fromEntries(
    Object.entries(own).map(([name, value]) => [name, localPaths(localise(value), mounts)]),
  )
  const command = commandOf(container, parent, { port, mounts, context, localise, env: own })
  if (typeof command === 'string') return command
  const console = await consoleOf(workload, parent, container, context)
  const plan = {
    ...command,
    env: { ...context.baseEnv, ...env, ...console?.env, PORT: String(port) },
    consoleUrl: console?.url,
    port,
    isEntrance: parent.kind === 'VirtualMCPServer',
    bridgeMode: parent.spec?.['proxyMode'] === 'sse' ? ('sse' as const) : ('streamable-http' as const),
    readyPath: command.stdio ? undefined : container.readinessProbe?.httpGet?.path,
  }
  return { ...plan, fingerprint: hashOf([plan, template.metadata?.annotations ?? {}]) }
}

/** Every virtual server of the session has a console, on this machine alone. */
async function consoleOf(
  workload: LocalObject,
  parent: LocalObject,
  { image }: LocalContainer,
  { addresses, consoleToken, runtimeImage, manifests }: PlanContext,
): Promise<{ readonly url: string; readonly env: Readonly<Record<string, string>> } | undefined> {
  if (parent.kind !== 'VirtualMCPServer' || image !== runtimeImage) return undefined
  const port = await addresses.portOf(workload, consolePort, { isEntrance: false })
  return {
    url: `http://127.0.0.1:${port}/#launch=${consoleToken}`,
    env: {
      [vmcpEnvironment.consoleToken]: consoleToken,
      [vmcpEnvironment.consolePort]: String(port),
      [vmcpEnvironment.consoleManifests]: JSON.stringify(manifests),
    },
  }
}

function commandOf(
  container: LocalContainer,
  parent: LocalObject,
  { port, mounts, context, localise, env }: CommandInput,
): { argv: string[]; ownWords: number; stdio: boolean } | string {
  if (container.image === context.runtimeImage) {
    const args = (container.args ?? []).map((arg) => localPaths(localise(expand(arg, env)), mounts))
    return {
      argv: [...context.self, ...listenLocally(args, port), ...pinningOf(parent, context)],
      ownWords: context.self.length,
      stdio: false,
    }
  }
  const line = parent.metadata.annotations?.[localCommandAnnotation]
  if (!line) return `annotate it with ${localCommandAnnotation} to run it here (its image needs a cluster)`
  const words = splitCommand(line.replaceAll('{port}', String(port)))
  if (typeof words === 'string') return `${localCommandAnnotation}: ${words}`
  const argv = words.map((word) => expand(word, env))
  return { argv, ownWords: 0, stdio: parent.spec?.['transport'] === 'stdio' }
}

/** Backends of the same name in two namespaces are two backends. */
function pinningOf({ kind, metadata }: LocalObject, { pinFirst }: PlanContext): string[] {
  if (kind !== 'VirtualMCPServer' || pinFirst === undefined) return []
  const { namespace = 'default' } = metadata
  return [`--pin-first=${namespace === 'default' ? pinFirst : join(pinFirst, namespace)}`]
}

interface CommandInput {
  readonly port: number
  readonly mounts: Mounts
  readonly context: PlanContext
  readonly localise: (text: string) => string
  /** The container's variables, which its arguments may name. */
  readonly env: Readonly<Record<string, string>>
}

/** Replaces the pod's listening address by the local one. */
function listenLocally(args: readonly string[], port: number): string[] {
  return args.map((arg) => {
    if (arg.startsWith('--host=')) return '--host=127.0.0.1'
    return arg.startsWith('--port=') ? `--port=${port}` : arg
  })
}
