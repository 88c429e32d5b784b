/**
 * Maps every generated manifest to its file: the kustomization, its components and overlays, and parts of the chart.
 *
 *   manifests/kustomization.yaml        CRDs, the base, and a self-signed certificate: `kubectl apply -k manifests/`
 *   manifests/base/                     objects that every installation has
 *   manifests/certificates/<variant>/   components: the certificate issuer
 *   manifests/metacontroller/           component: a private Metacontroller with minimal permissions
 *   manifests/monitoring/               component: a ServiceMonitor
 *   manifests/gateway-api/              component: HTTPRoutes for spec.exposure
 *   manifests/observability/            alert rules, dashboards, and a PodMonitor for the servers
 *   manifests/overlays/<name>/          complete combinations; only `everything` has the CRDs
 *   manifests/chart/                    Chart.yaml, kinds.yaml and CRDs; templates and values are written by hand
 */
import { admission } from './admission.ts'
import { certManager, certManagerAnnotation, selfSigned } from './certificates.ts'
import { childResource, controllers } from './controllers.ts'
import { type Defaults, readDefaults } from './defaults.ts'
import type { FilesInput, HookedKind } from './kinds.ts'
import { chartFiles } from './chart-file.ts'
import { controllerName, type GeneratedManifest, names } from './objects.ts'
import { metacontroller, monitoring } from './options.ts'
import { observability } from './observability/index.ts'
import { userRoles } from './rbac.ts'
import { gatewayApiVariable, hooksServer, namespace } from './server.ts'
import { yamlFile, yamlValue } from './yaml.ts'

/** Returns file contents, keyed by path relative to manifests/. */
export function files(input: FilesInput): Map<string, string> {
  const defaults = readDefaults(input.version)
  return new Map([...plainFiles(input, defaults), ...chartFiles(input, defaults)])
}

function plainFiles({ kinds, hooked, crds }: FilesInput, defaults: Defaults): [string, string][] {
  const base = {
    'namespace.yaml': namespace(defaults),
    'hooks.yaml': hooksServer(defaults),
    'roles.yaml': userRoles(kinds, defaults),
    'controllers.yaml': controllers(hooked, defaults),
    'admission.yaml': admission(kinds, defaults),
  }
  const component = (
    folder: string,
    objects: readonly GeneratedManifest[],
    more: object = {},
  ): [string, string][] => [
    [`${folder}/objects.yaml`, yamlFile(objects)],
    [`${folder}/kustomization.yaml`, kustomization('Component', { resources: ['objects.yaml'], ...more })],
  ]
  const overlay = (name: string, ...components: string[]): [string, string] => [
    `overlays/${name}/kustomization.yaml`,
    kustomization('Kustomization', {
      resources: ['../../base'],
      components: components.map((path) => `../../${path}`),
    }),
  ]
  return [
    [
      'kustomization.yaml',
      kustomization('Kustomization', {
        resources: [...crds.map((name) => `crds/${name}`), 'base'],
        components: ['certificates/self-signed'],
      }),
    ],
    ...Object.entries(base).map(([name, objects]): [string, string] => [`base/${name}`, yamlFile(objects)]),
    ['base/kustomization.yaml', kustomization('Kustomization', { resources: Object.keys(base) })],
    ...component('certificates/self-signed', selfSigned(hooked, defaults)),
    ...component('certificates/cert-manager', certManager(hooked, defaults), {
      patches: [
        {
          target: { kind: 'ValidatingWebhookConfiguration', name: names.hooks },
          patch: yamlValue([
            { op: 'add', path: '/metadata/annotations', value: certManagerAnnotation(defaults) },
          ]),
        },
      ],
    }),
    ['gateway-api/kustomization.yaml', kustomization('Component', { patches: gatewayApiPatches(hooked) })],
    ...component('metacontroller', metacontroller(hooked, defaults)),
    ...component('monitoring', monitoring(defaults)),
    ...observability(defaults),
    ['chart/definitions/kustomization.yaml', kustomization('Kustomization', { resources: crds })],
    [
      'overlays/everything/kustomization.yaml',
      kustomization('Kustomization', {
        resources: ['../../chart/definitions', '../../base'],
        components: ['../../certificates/self-signed', '../../metacontroller'],
      }),
    ],
    overlay('cert-manager', 'certificates/cert-manager'),
    overlay('private-metacontroller', 'certificates/self-signed', 'metacontroller'),
  ]
}

/** Returns the objects that the chart setting integrations.gatewayAPI adds. */
function gatewayApiPatches(hooked: readonly HookedKind[]): readonly object[] {
  const add = (kind: string, name: string, path: string, value: object) => ({
    target: { kind, name },
    patch: yamlValue([{ op: 'add', path, value }]),
  })
  const routed = hooked.flatMap(({ plural, children }) =>
    children
      .filter(({ integration }) => integration === 'gatewayAPI')
      .map((child) => ({ plural, child: childResource(child) })),
  )
  return [
    ...routed.map(({ plural, child }) =>
      add('CompositeController', controllerName(plural), '/spec/childResources/-', child),
    ),
    add('Deployment', names.hooks, '/spec/template/spec/containers/0/env/-', gatewayApiVariable),
  ]
}

function kustomization(kind: 'Kustomization' | 'Component', body: object): string {
  const version = kind === 'Component' ? 'v1alpha1' : 'v1beta1'
  return yamlFile([{ apiVersion: `kustomize.config.k8s.io/${version}`, kind, ...body }])
}
