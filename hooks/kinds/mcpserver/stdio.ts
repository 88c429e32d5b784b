/**
 * How a stdio server is reached in a cluster: with a command, behind a bridge in its own container; without one, by attaching
 * to the container that its image's own entrypoint runs in.
 */
import { localCommandAnnotation } from '../../../schemas/index.ts'
import { type Fields, fieldsOf, isFields, listOf } from '../../base/kube.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { HookSettings } from '../../base/settings.ts'
import type { SyncContext } from '../../sync/context.ts'
import { type Attach, attachOf } from './attach.ts'
import { type Bridge, bridgeOf } from './bridge.ts'
import { serverContainer } from './container.ts'

type Context = SyncContext<'MCPServer'>

/** What decides of a spec. */
interface StdioSpec {
  readonly transport?: unknown
  readonly podTemplateSpec?: unknown
}

export interface Stdio {
  readonly bridge?: Bridge | undefined
  readonly attach?: Attach | undefined
  readonly failure?: SyncFailure | undefined
}

/** Empty for other transports, and where a local command stands in for the image. */
export function stdioOf(context: Context): Stdio {
  const { parent, settings, conditions } = context
  if (parent.spec.transport !== 'stdio') return {}
  const stdio: Stdio = settings.localCommands ? withLocalCommand(context) : chosen(context)
  const reason = stdio.attach ? 'AttachedToEntrypoint' : 'CommandGiven'
  const message = stdio.attach
    ? "The image's own entrypoint is run, and its streams are attached to"
    : 'The server can be run behind the bridge'
  conditions.check('StdioBridgeValid', stdio.failure, reason, message)
  if (stdio.attach) {
    conditions.set(
      'SharedProcess',
      'True',
      'OneProcess',
      'One process serves all clients: it cannot ask one of them, and its messages are in its container log. ' +
        'A command in podTemplateSpec, container mcp, gives each session a process of its own',
    )
  }
  return stdio
}

/** Requires a local command, because without a cluster there is no container to run or to attach to. */
function withLocalCommand({ stored }: Context): Stdio {
  if (stored.metadata.annotations?.[localCommandAnnotation]) return {}
  return {
    failure: {
      reason: 'LocalCommandMissing',
      message: `transport stdio without a cluster requires a local command: annotate it with ${localCommandAnnotation}`,
    },
  }
}

function chosen(context: Context): Stdio {
  if (isAttached(context)) {
    const { value, failure } = attachOf(context)
    return { attach: value, failure }
  }
  if (hasCommand(context.spec)) {
    const { value, failure } = bridgeOf(context, ownContainer(context.spec))
    return { bridge: value, failure }
  }
  return {
    failure: {
      reason: 'AttachDisabled',
      message:
        "transport stdio needs the server's command here, for this installation attaches to no container " +
        '(GATEHOUSE_STDIO_ATTACH is false): set podTemplateSpec.spec.containers, name mcp, command',
    },
  }
}

/** The server's own container as the podTemplateSpec has it. */
function ownContainer(spec: StdioSpec): Fields {
  const containers = listOf(fieldsOf(fieldsOf(spec.podTemplateSpec)['spec'])['containers'])
  return containers.filter(isFields).find((container) => container['name'] === serverContainer) ?? {}
}

export function hasCommand(spec: StdioSpec): boolean {
  return listOf(ownContainer(spec)['command']).some((word) => typeof word === 'string')
}

/** True when the streams of the server are attached to. */
export function isAttached({ spec, settings }: Context): boolean {
  return attachesTo(spec, settings)
}

/** The same of a spec that nobody has checked yet. */
export function attachesTo(spec: StdioSpec, settings: HookSettings): boolean {
  const isStdio = spec.transport === 'stdio' && !settings.localCommands
  return isStdio && settings.stdioAttach && !hasCommand(spec)
}
