/**
 * A stdio server in a cluster: the runtime is put into the server's own container and runs the server's command behind
 * HTTP, so that no pod needs to attach to another one through the Kubernetes API.
 *
 * An init container of the runtime image copies the runtime with its own loader and libraries into a volume, which makes
 * it independent of what the server's image has. The image's entrypoint cannot be seen from here, so the command must be
 * given: podTemplateSpec, container `mcp`, `command`.
 */
import { fieldsOf, isFields, listOf, type Fields, type StringMap } from '../../kube.ts'
import { validateRuntime } from '../../../schemas/index.ts'
import { escaped } from '../../children/literal.ts'
import { runtimeContainerSecurity } from '../../children/security.ts'
import type { SyncContext } from '../../sync/context.ts'
import { serverNames } from '../../children/names.ts'
import type { ConfigPart } from '../../runtime-config/part.ts'
import { proxyFile } from '../common/proxy/paths.ts'
import { toYaml } from '../../children/yaml.ts'
import { serverContainer, serverPort } from './container.ts'

export interface Bridge {
  /** Turns the pod template into one that runs the server behind the bridge. */
  readonly apply: (template: Fields) => Fields
  readonly files: StringMap
}

const runtimeVolume = 'gatehouse-runtime'
const runtimeDirectory = '/gatehouse'
const configVolume = 'gatehouse-bridge'
const configDirectory = '/etc/gatehouse/bridge'

/** Where `gatehouse unpack` puts the runtime: its loader, its libraries, Node and the program. */
const runtimeCommand = [
  `${runtimeDirectory}/ld.so`,
  '--library-path',
  `${runtimeDirectory}/lib`,
  `${runtimeDirectory}/node`,
  `${runtimeDirectory}/gatehouse.js`,
] as const

/** The bridge of a stdio server; undefined for other transports, and where a local command stands in for the image. */
export function bridgeOf(context: SyncContext<'MCPServer'>): ConfigPart<Bridge | undefined> {
  const { parent, settings } = context
  if (parent.spec.transport !== 'stdio' || settings.localCommands) return { value: undefined }
  const own = ownContainer(parent.spec.podTemplateSpec)
  const [program, ...fixed] = wordsOf(own['command'])
  if (program === undefined) {
    return {
      failure: {
        reason: 'StdioCommandRequired',
        message:
          "transport stdio needs the server's command, for the image's entrypoint cannot be seen from here: set " +
          'podTemplateSpec.spec.containers, name mcp, command',
      },
    }
  }
  const file = {
    name: context.name,
    // The bridge expands as the kubelet does: words of the podTemplateSpec are a pod's, those of the resource are literal.
    stdio: {
      command: program,
      args: [...fixed, ...(own['args'] ? wordsOf(own['args']) : (parent.spec.args ?? []).map(escaped))],
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
  return { value: { files: { [proxyFile]: toYaml(file) }, apply: (template) => bridged(context, template) } }
}

function ownContainer(podTemplateSpec: unknown): Fields {
  const containers = listOf(fieldsOf(fieldsOf(podTemplateSpec)['spec'])['containers'])
  return containers.filter(isFields).find((container) => container['name'] === serverContainer) ?? {}
}

function wordsOf(words: unknown): readonly string[] {
  return listOf(words).filter((word) => typeof word === 'string')
}

function bridged(context: SyncContext<'MCPServer'>, template: Fields): Fields {
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
        container['name'] === serverContainer ? wrapped(container, name, serverPort(parent)) : container,
      ),
      volumes: [
        ...listOf(spec['volumes']),
        { name: runtimeVolume, emptyDir: {} },
        { name: configVolume, configMap: { name: serverNames(name).serverConfig } },
      ],
    },
  }
}

function wrapped(container: Fields, name: string, port: number): Fields {
  return {
    ...container,
    command: runtimeCommand,
    args: ['proxy', `--config=${configDirectory}/${proxyFile}`, '--host=0.0.0.0', `--port=${port}`, name],
    volumeMounts: [
      ...listOf(container['volumeMounts']),
      { name: runtimeVolume, mountPath: runtimeDirectory, readOnly: true },
      { name: configVolume, mountPath: configDirectory, readOnly: true },
    ],
  }
}
