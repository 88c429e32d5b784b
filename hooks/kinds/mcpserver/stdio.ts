/**
 * Decides how clients reach a stdio server in a cluster. With a command, the server runs behind a bridge in its own
 * container. Without a command, the proxy attaches to the container that runs the image's entrypoint.
 */
import { localCommandAnnotation } from '../../../schemas/index.ts'
import { type Fields, fieldsOf, isFields, listOf } from '../../base/kube.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { HookSettings } from '../../base/settings.ts'
import type { SyncContext } from '../../sync/context.ts'
import { type Attach, attachOf } from './attach.ts'
import { type Bridge, bridgeOf, serverContainer } from './bridge.ts'

type Context = SyncContext<'MCPServer'>

/** The spec fields that this decision depends on. */
interface StdioSpec {
  readonly transport?: unknown
  readonly podTemplateSpec?: unknown
}

export interface Stdio {
  readonly bridge?: Bridge | undefined
  readonly attach?: Attach | undefined
  readonly failure?: SyncFailure | undefined
}

/** Returns an empty object for other transports and for local commands that replace the image. */
export function stdioOf(context: Context): Stdio {
  const { parent, settings, conditions } = context
  if (parent.spec.transport !== 'stdio') return {}
  const stdio: Stdio = settings.localCommands ? withLocalCommand(context) : bridgeOrAttach(context)
  const reason = stdio.attach ? 'AttachedToEntrypoint' : 'CommandGiven'
  const message = stdio.attach
    ? "The proxy attaches to the image's own entrypoint"
    : 'The server runs behind the bridge'
  conditions.check('StdioBridgeValid', stdio.failure, reason, message)
  if (stdio.attach) {
    conditions.set(
      'SharedProcess',
      'True',
      'OneProcess',
      'One process serves all clients: it cannot send requests to a client, and its messages go to the container log. ' +
        'Set a command for the mcp container in podTemplateSpec to run one process per session',
    )
  }
  return stdio
}

/** Requires a local command, because without a cluster there is no container to run or attach to. */
function withLocalCommand({ stored }: Context): Stdio {
  if (stored.metadata.annotations?.[localCommandAnnotation]) return {}
  return {
    failure: {
      reason: 'LocalCommandMissing',
      message: `transport stdio without a cluster requires a local command: annotate the MCPServer with ${localCommandAnnotation}`,
    },
  }
}

function bridgeOrAttach(context: Context): Stdio {
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
        'transport stdio requires a command, because attaching is disabled in this installation ' +
        '(GATEHOUSE_STDIO_ATTACH is false): set podTemplateSpec.spec.containers, name mcp, command',
    },
  }
}

/** Returns the server's own container from the podTemplateSpec. */
function ownContainer(spec: StdioSpec): Fields {
  const containers = listOf(fieldsOf(fieldsOf(spec.podTemplateSpec)['spec'])['containers'])
  return containers.filter(isFields).find((container) => container['name'] === serverContainer) ?? {}
}

export function hasCommand(spec: StdioSpec): boolean {
  return listOf(ownContainer(spec)['command']).some((word) => typeof word === 'string')
}

/** True when the proxy attaches to the server's streams. */
export function isAttached({ spec, settings }: Context): boolean {
  return attachesTo(spec, settings)
}

/** Like `isAttached`, for a spec that may be invalid. */
export function attachesTo(spec: StdioSpec, settings: HookSettings): boolean {
  const isStdio = spec.transport === 'stdio' && !settings.localCommands
  return isStdio && settings.stdioAttach && !hasCommand(spec)
}
