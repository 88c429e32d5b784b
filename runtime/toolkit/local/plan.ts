/**
 * Plans the local process for one workload: its command, environment and port.
 *
 * A container with the runtime image runs this program with the container's arguments. For any other container, the
 * command in its owner's `gatehouse.dev/local-command` annotation runs instead of the image and args. `$(NAME)` in the
 * command expands to the value of one of the container's variables.
 */
import { join } from 'node:path'
import { hashOf, localCommandAnnotation } from '../../../schemas/index.ts'
import { environment, userLoginVariables, vmcpEnvironment } from '../../config/index.ts'
import type { TokenDigests } from '../../net/index.ts'
import type { LocalObject } from '../manifests/objects.ts'
import { accessEnvironment, acceptedTokens, type SessionAccess } from './access.ts'
import type { Addresses } from './addresses.ts'
import { splitCommand } from './command-line.ts'
import { type LocalContainer, podTemplateOf, expand } from './pods.ts'
import { environmentOf, localPaths, type Mounts, writeVolumes } from './volumes.ts'

export interface ProcessPlan {
  readonly argv: readonly string[]
  /** Number of leading words that start this program. 0 when the command starts another program. */
  readonly ownWords: number
  readonly env: Readonly<Record<string, string>>
  readonly port: number
  /** True if the user chose the port. */
  readonly isEntrance: boolean
  /** Path that responds with 200 when the process is ready. Undefined when a TCP connection is sufficient. */
  readonly readyPath: string | undefined
  /** True when the command serves MCP over stdin and stdout, so that `port` needs a bridge. */
  readonly stdio: boolean
  /** Transport that the bridge serves. */
  readonly bridgeMode: 'streamable-http' | 'sse'
  /** URL of this server's web console, with its launch token. Undefined without a console. */
  readonly consoleUrl: string | undefined
  /** Values from Secrets, which are masked in `/status`. */
  readonly secrets: readonly string[]
  /** Digests that the server's listener accepts, and a token for probes. Undefined when no token is required. */
  readonly access?: { readonly digests: TokenDigests; readonly token: string } | undefined
  /** A change to this value requires a process restart. Changes to files do not affect this value. */
  readonly fingerprint: string
}

export interface PlanContext {
  readonly objects: readonly LocalObject[]
  readonly addresses: Addresses
  readonly folder: string
  readonly runtimeImage: string
  /** Command that runs this program: `node path/to/gatehouse`. */
  readonly self: readonly string[]
  /** Folder for the locks of backends that do not have one yet. */
  readonly pinFirst?: string | undefined
  readonly baseEnv: Readonly<Record<string, string>>
  /** File in which a namespace's virtual servers find the causes of failures in the session's programs. */
  readonly causesFile: string
  /** Undefined when all local programs may use the session's ports. */
  readonly access?: SessionAccess | undefined
  /** Token that grants access to this session's consoles. */
  readonly consoleToken: string
  /** Key that lets the user log in to this session's backends. */
  readonly signInKey: string
  /** Files and folders of the manifests, as absolute paths. Empty when approvals cannot be written to files. */
  readonly manifests: readonly string[]
}

/** Placeholder for the console port, which is not a container port in this mode. */
const consolePort = 0

/** Returns the plan for a Deployment or StatefulSet, or the reason why it cannot run here. */
export async function planOf(
  workload: LocalObject,
  parent: LocalObject,
  context: PlanContext,
): Promise<ProcessPlan | string> {
  const template = podTemplateOf(workload)
  const container = template?.spec.containers[0]
  if (!template || !container) return 'the pod template has no container'
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
  const secrets = (container.env ?? []).flatMap(({ name, valueFrom }) =>
    valueFrom?.secretKeyRef ? (env[name] ?? []) : [],
  )
  const { access } = context
  const isOwnProgram = command.ownWords > 0
  const plan = {
    ...command,
    env: {
      ...context.baseEnv,
      ...env,
      ...console?.env,
      ...loginsOf(parent, container, context),
      ...(access && isOwnProgram && accessEnvironment(parent, access)),
      PORT: String(port),
    },
    access:
      access && (isOwnProgram || command.stdio)
        ? { digests: acceptedTokens(parent, access), token: access.token }
        : undefined,
    consoleUrl: console?.url,
    port,
    secrets,
    isEntrance: parent.kind === 'VirtualMCPServer',
    bridgeMode: parent.spec?.['proxyMode'] === 'sse' ? ('sse' as const) : ('streamable-http' as const),
    readyPath: command.stdio ? undefined : container.readinessProbe?.httpGet?.path,
  }
  return { ...plan, fingerprint: hashOf([plan, template.metadata?.annotations ?? {}]) }
}

/** Returns a virtual server's console, which listens only on this machine. */
async function consoleOf(
  workload: LocalObject,
  parent: LocalObject,
  { image }: LocalContainer,
  { addresses, causesFile, consoleToken, runtimeImage, manifests }: PlanContext,
): Promise<{ readonly url: string; readonly env: Readonly<Record<string, string>> } | undefined> {
  if (parent.kind !== 'VirtualMCPServer' || image !== runtimeImage) return undefined
  const port = await addresses.portOf(workload, consolePort, { isEntrance: false })
  return {
    url: `http://127.0.0.1:${port}/#launch=${consoleToken}`,
    env: {
      [vmcpEnvironment.consoleToken]: consoleToken,
      [vmcpEnvironment.consolePort]: String(port),
      [vmcpEnvironment.consoleManifests]: JSON.stringify(manifests),
      [vmcpEnvironment.localCauses]: causesFile,
    },
  }
}

/** Lets the user sign in to a virtual server's backends. `gatehouse proxy` uses the same stored logins. */
function loginsOf(
  parent: LocalObject,
  { image }: LocalContainer,
  { runtimeImage, signInKey }: PlanContext,
): Readonly<Record<string, string>> {
  if (parent.kind !== 'VirtualMCPServer' || image !== runtimeImage) return {}
  const env = environment()
  const own = userLoginVariables.flatMap((name) => {
    const value = env[name]
    return value === undefined ? [] : [[name, value]]
  })
  return { ...Object.fromEntries(own), [vmcpEnvironment.signInKey]: signInKey }
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
  if (!line)
    return `add the annotation ${localCommandAnnotation} to run it here (its image runs only in a cluster)`
  const words = splitCommand(line.replaceAll('{port}', String(port)))
  if (typeof words === 'string') return `${localCommandAnnotation}: ${words}`
  const argv = words.map((word) => expand(word, env))
  return { argv, ownWords: 0, stdio: parent.spec?.['transport'] === 'stdio' }
}

/** Use a separate folder for each namespace, because backends with the same name in two namespaces are different. */
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
  /** The container's variables, which its arguments can refer to. */
  readonly env: Readonly<Record<string, string>>
}

/** Replaces the pod's listening address with the local address. */
function listenLocally(args: readonly string[], port: number): string[] {
  return args.map((arg) => {
    if (arg.startsWith('--host=')) return '--host=127.0.0.1'
    return arg.startsWith('--port=') ? `--port=${port}` : arg
  })
}
