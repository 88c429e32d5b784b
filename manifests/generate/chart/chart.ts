/** The Helm chart: the same objects as templates, with values, their schema, a README and what Artifact Hub shows. */
import { admission } from '../admission.ts'
import { certManager, certManagerAnnotation, selfSigned } from '../certificates.ts'
import { chartReadme } from './readme.ts'
import { controllers } from '../controllers.ts'
import type { FilesInput } from '../kinds.ts'
import { metacontrollerDefinitions } from '../metacontroller-definitions.ts'
import { metacontroller, monitoring } from '../options.ts'
import { userRoles } from '../rbac.ts'
import { hooksServer } from '../server.ts'
import { settings as allSettings } from '../settings/settings.ts'
import { chartValues } from '../settings/values.ts'
import { installationTest } from './test-pod.ts'
import { clusterTemplate, definitionsTemplate, notesTemplate, rulesTemplate } from './texts.ts'
import { valuesFile, valuesSchema } from './values-files.ts'
import { jsonFile, templateFile, yamlFile, yamlValue } from '../yaml.ts'

const home = 'https://github.com/gatehouse-dev/gatehouse'

/** What `helm package` leaves out. */
const ignored = [
  '# What helm package leaves out.',
  'ci/',
  'definitions/kustomization.yaml',
  '*.tgz',
  '.DS_Store',
  '.git/',
  '*.swp',
  '*~',
  '',
]

/** Path relative to manifests/ -> content. */
export function chartFiles(input: FilesInput): [string, string][] {
  const settings = allSettings(input.version)
  const entries: [string, string][] = [
    ...templates(input),
    ['values.yaml', valuesFile(settings, yamlValue)],
    ['values.schema.json', jsonFile(valuesSchema(settings))],
    ['Chart.yaml', chartFile(input)],
    ['README.md', chartReadme(settings)],
    ['.helmignore', ignored.join('\n')],
    ...metacontrollerChart(input.version),
  ]
  return entries.map(([path, content]) => [`chart/${path}`, content])
}

function templates({ version, kinds, hooked }: FilesInput): [string, string][] {
  const values = chartValues(version)
  const managed = '.Values.certificates.mode "cert-manager"'
  const webhooks = admission(kinds, values)
  const annotated = webhooks.map((object) => ({
    ...object,
    metadata: { ...object.metadata, annotations: certManagerAnnotation(values) },
  }))
  const files: readonly [string, string][] = [
    ['hooks.yaml', templateFile(hooksServer(values))],
    ['roles.yaml', templateFile(userRoles(kinds, values))],
    ['controllers.yaml', templateFile(controllers(hooked, values))],
    ['admission.yaml', templateFile(webhooks, `ne ${managed}`)],
    ['admission-cert-manager.yaml', templateFile(annotated, `eq ${managed}`)],
    ['certificates-self-signed.yaml', templateFile(selfSigned(hooked, values), `ne ${managed}`)],
    ['certificates-cert-manager.yaml', templateFile(certManager(hooked, values), `eq ${managed}`)],
    ['metacontroller.yaml', templateFile(metacontroller(hooked, values), '.Values.metacontroller.enabled')],
    ['test.yaml', templateFile(installationTest(values))],
    ['cluster.yaml', clusterTemplate],
    ['rules.yaml', rulesTemplate],
    ['definitions.yaml', definitionsTemplate],
    ['NOTES.txt', notesTemplate],
    ['service-monitor.yaml', templateFile(monitoring(values), '.Values.serviceMonitor.enabled')],
  ]
  return files.map(([name, content]) => [`templates/${name}`, content])
}

/** Helm takes a chart within the chart, or leaves it out: so definitions depend on a value, which a folder crds/ cannot. */
const metacontrollerChartName = 'metacontroller-definitions'

/** Helm makes the definitions of a folder crds/ before all else, leaves those that are there alone, and never deletes one. */
function metacontrollerChart(version: string): [string, string][] {
  const folder = `charts/${metacontrollerChartName}`
  const chart = {
    apiVersion: 'v2',
    name: metacontrollerChartName,
    description: "Definitions of Metacontroller's kinds, for a cluster that has none",
    version,
  }
  return [
    [`${folder}/Chart.yaml`, yamlFile([chart])],
    [`${folder}/crds/definitions.yaml`, yamlFile(metacontrollerDefinitions)],
  ]
}

function chartFile({ version, kinds }: FilesInput): string {
  const images = allSettings(version)
    .filter(({ path }) => ['images.hooks', 'images.runtime', 'metacontroller.image'].includes(path))
    .map(({ path, default: image }) => ({ name: path.replace('.', '-'), image }))
  const crds = kinds.map(({ kind, plural, description }) => ({
    kind,
    version: 'v1beta1',
    name: `${plural}.gatehouse.dev`,
    displayName: kind,
    description,
  }))
  return yamlFile([
    {
      apiVersion: 'v2',
      name: 'gatehouse',
      description: "One guarded entrance to all of a team's MCP servers",
      type: 'application',
      version,
      appVersion: version,
      // The oldest API server with admission match conditions and the sleep action in pod hooks.
      kubeVersion: '>=1.30.0-0',
      dependencies: [{ name: metacontrollerChartName, version, condition: 'metacontroller.enabled' }],
      home,
      sources: [home],
      keywords: ['mcp', 'model context protocol', 'gateway', 'proxy', 'oauth', 'authorization'],
      annotations: {
        'artifacthub.io/category': 'ai-machine-learning',
        'artifacthub.io/license': 'Apache-2.0',
        'artifacthub.io/operator': 'true',
        'artifacthub.io/links': yamlValue([
          { name: 'documentation', url: `${home}/tree/main/docs` },
          { name: 'support', url: `${home}/issues` },
        ]),
        'artifacthub.io/images': yamlValue(images),
        'artifacthub.io/crds': yamlValue(crds),
      },
    },
  ])
}
