/**
 * Generates the Helm chart files that depend on the version and the kinds. All other chart files are written by hand.
 */
import { home } from '../../schemas/index.ts'
import type { Defaults } from './defaults.ts'
import type { FilesInput } from './kinds.ts'
import { distinct } from './kinds.ts'
import { metacontrollerDefinitions } from './metacontroller-definitions.ts'
import { metacontrollerRules } from './rbac.ts'
import { yamlFile, yamlValue } from './yaml.ts'

/** The definitions are in a subchart, which a value can disable. Helm has no such option for a `crds/` folder. */
const subchart = 'metacontroller-definitions'

/** Contents, keyed by path relative to manifests/. */
export function chartFiles(input: FilesInput, defaults: Defaults): [string, string][] {
  const { version } = input
  return [
    ['chart/Chart.yaml', chartFile(input, defaults)],
    ['chart/kinds.yaml', kindsFile(input)],
    [
      `chart/charts/${subchart}/Chart.yaml`,
      yamlFile([
        {
          apiVersion: 'v2',
          name: subchart,
          description: "CRDs of Metacontroller's kinds, for a cluster without them",
          version,
        },
      ]),
    ],
    [`chart/charts/${subchart}/crds/definitions.yaml`, yamlFile(metacontrollerDefinitions)],
  ]
}

/** Returns the data about the kinds that the templates need. */
function kindsFile({ kinds, hooked }: FilesInput): string {
  return yamlFile([
    {
      resources: kinds.map(({ plural }) => plural),
      deletionReviewed: kinds.filter((kind) => kind.isDeletionReviewed).map(({ plural }) => plural),
      kinds: hooked.map(({ plural, children }) => ({ plural, children: distinct(children) })),
      metacontrollerRules: metacontrollerRules(hooked),
    },
  ])
}

function chartFile({ version, kinds }: FilesInput, defaults: Defaults): string {
  const images = ['images.hooks', 'images.runtime', 'metacontroller.image'].map((path) => ({
    name: path.replace('.', '-'),
    image: defaults.text(path),
  }))
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
      description: "One protected address for all of a team's MCP servers",
      type: 'application',
      version,
      appVersion: version,
      // The oldest API server that supports admission match conditions and the sleep action of lifecycle hooks.
      kubeVersion: '>=1.30.0-0',
      dependencies: [{ name: subchart, version, condition: 'metacontroller.enabled' }],
      home: home.repository,
      sources: [home.repository],
      keywords: ['mcp', 'model context protocol', 'gateway', 'proxy', 'oauth', 'authorization'],
      annotations: {
        'artifacthub.io/category': 'ai-machine-learning',
        'artifacthub.io/license': 'Apache-2.0',
        'artifacthub.io/operator': 'true',
        'artifacthub.io/links': yamlValue([
          { name: 'documentation', url: `${home.repository}/tree/main/docs` },
          { name: 'support', url: `${home.repository}/issues` },
        ]),
        'artifacthub.io/images': yamlValue(images),
        'artifacthub.io/crds': yamlValue(crds),
      },
    },
  ])
}
