/**
 * A stdio server whose command is given: the runtime is put into the server's own container and runs the command behind HTTP,
 * so that no pod needs to attach to another one through the Kubernetes API, and each session has a process of its own.
 *
 * An init container of the runtime image copies the runtime with its own loader and libraries into a volume, which makes
 * it independent of what the server's image has.
 */
import { fieldsOf, isFields, listOf, type Fields, type StringMap } from '../../base/kube.ts'
import { validateRuntime } from '../../../schemas/index.ts'
import { escaped } from '../../children/literal.ts'
import { runtimeContainerSecurity } from '../../children/security.ts'
import type { SyncContext } from '../../sync/context.ts'
import { serverNames } from '../../children/names.ts'
import type { ConfigPart } from '../../sync/conditions.ts'
import { proxyFile } from '../common/proxy/spec.ts'
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

/** The bridge of a stdio server; `own` is its container in podTemplateSpec, with a command. */
export function bridgeOf(context: SyncContext<'MCPServer'>, own: Fields): ConfigPart<Bridge> {
  const { parent } = context
  const [program = '', ...fixed] = wordsOf(own['command'])
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
