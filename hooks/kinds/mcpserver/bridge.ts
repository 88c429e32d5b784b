/**
 * Runs a stdio server with a given command. The runtime is copied into the server's own container and runs the command
 * behind HTTP. Therefore, no pod needs to attach to another pod through the Kubernetes API, and each session has its
 * own process.
 *
 * An init container with the runtime image copies the runtime, its loader and its libraries to a volume, so the runtime
 * does not depend on the server's image.
 */
import { fieldsOf, isFields, listOf, type Fields, type StringMap } from '../../base/kube.ts'
import { validateRuntime, type MCPServer } from '../../../schemas/index.ts'
import { escapeVariables } from '../../children/literal.ts'
import { runtimeContainerSecurity } from '../../children/security.ts'
import type { SyncContext } from '../../sync/context.ts'
import { serverNames } from '../../children/names.ts'
import type { ConfigPart } from '../../sync/conditions.ts'
import { toYaml } from '../../children/yaml.ts'
import { proxyFile } from '../common/proxy/children.ts'

/** Name of the server's own container, which podTemplateSpec refers to. */
export const serverContainer = 'mcp'

/** Returns the port that the server itself listens on. */
export function serverPort({ spec }: MCPServer): number {
  return spec.mcpPort ?? 8080
}

export interface Bridge {
  /** Modifies the pod template so that the server runs behind the bridge. */
  readonly apply: (template: Fields) => Fields
  readonly files: StringMap
}

const runtimeVolume = 'gatehouse-runtime'
const runtimeDirectory = '/gatehouse'
const configVolume = 'gatehouse-bridge'
const configDirectory = '/etc/gatehouse/bridge'

/** Command that starts the runtime from the path that `gatehouse unpack` writes to. */
const runtimeCommand = [
  `${runtimeDirectory}/ld.so`,
  '--library-path',
  `${runtimeDirectory}/lib`,
  `${runtimeDirectory}/node`,
  `${runtimeDirectory}/gatehouse.js`,
] as const

/** Builds the bridge for a stdio server. `own` is the server's container in podTemplateSpec; it has a command. */
export function bridgeOf(context: SyncContext<'MCPServer'>, own: Fields): ConfigPart<Bridge> {
  const { parent } = context
  const [program = '', ...fixed] = wordsOf(own['command'])
  const file = {
    name: context.name,
    // The bridge expands variables as the kubelet does. Variables in arguments from the podTemplateSpec are therefore
    // expanded, and arguments from the resource are escaped.
    stdio: {
      command: program,
      args: [
        ...fixed,
        ...(own['args'] ? wordsOf(own['args']) : (parent.spec.args ?? []).map(escapeVariables)),
      ],
    },
    proxyMode: parent.spec.proxyMode,
    host: '0.0.0.0',
    port: serverPort(parent),
  }
  const { violations } = validateRuntime('proxy', file)
  if (violations[0]) {
    return {
      failure: { reason: 'ConfigInvalid', message: `${violations[0].path}: ${violations[0].message}` },
    }
  }
  return {
    value: { files: { [proxyFile]: toYaml(file) }, apply: (template) => withBridge(context, template) },
  }
}

function wordsOf(words: unknown): readonly string[] {
  return listOf(words).filter((word) => typeof word === 'string')
}

function withBridge(context: SyncContext<'MCPServer'>, template: Fields): Fields {
  const { settings, name, parent } = context
  const spec = fieldsOf(template['spec'])
  const containers = listOf(spec['containers']).filter(isFields)
  const install = {
    name: 'gatehouse-unpack',
    image: settings.runtimeImage,
    imagePullPolicy: 'IfNotPresent',
    args: ['unpack', runtimeDirectory],
    resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { cpu: '1', memory: '256Mi' } },
    volumeMounts: [{ name: runtimeVolume, mountPath: runtimeDirectory }],
    securityContext: runtimeContainerSecurity(settings),
  }
  return {
    ...template,
    spec: {
      ...spec,
      initContainers: [...listOf(spec['initContainers']), install],
      containers: containers.map((container) =>
        container['name'] === serverContainer
          ? withBridgeCommand(container, name, serverPort(parent))
          : container,
      ),
      volumes: [
        ...listOf(spec['volumes']),
        { name: runtimeVolume, emptyDir: {} },
        { name: configVolume, configMap: { name: serverNames(name).serverConfig } },
      ],
    },
  }
}

function withBridgeCommand(container: Fields, name: string, port: number): Fields {
  return {
    ...container,
    command: runtimeCommand,
    args: [
      'proxy',
      `--config=${configDirectory}/${proxyFile}`,
      '--host=0.0.0.0',
      `--port=${port}`,
      '--',
      name,
    ],
    volumeMounts: [
      ...listOf(container['volumeMounts']),
      { name: runtimeVolume, mountPath: runtimeDirectory, readOnly: true },
      { name: configVolume, mountPath: configDirectory, readOnly: true },
    ],
  }
}
