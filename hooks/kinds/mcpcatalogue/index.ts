/**
 * MCPCatalogue: serves the published virtual servers of its namespace as a read-only MCP registry.
 *
 * The hook writes the servers into the configuration file. The running catalogue reloads the file, so only changes to
 * the environment or the volumes restart the pods. Servers from other namespaces are never listed, because references
 * cannot cross namespaces.
 */
import {
  hashOf,
  type input,
  type MCPCatalogue,
  validateRuntime,
  type Violation,
} from '../../../schemas/index.ts'
import { metadataViolations } from '../../children/checks/metadata-shape.ts'
import { catalogueNames, serviceUrl } from '../../children/names.ts'
import { mergePodTemplate, mergedTemplateViolations } from '../../children/pod-template.ts'
import { selectorLabels } from '../../children/labels.ts'
import { sizeFailure, sizeViolations } from '../../children/size.ts'
import { toYaml } from '../../children/yaml.ts'
import { definedFields, fieldsOf, textOf } from '../../base/kube.ts'
import type { CheckSettings, HookSettings } from '../../base/settings.ts'
import { kindsNamedBy, namesByKind, resolveReferences } from '../../references/reference.ts'
import { specFailure } from '../../references/resolve.ts'
import { PodNeeds } from '../../runtime-config/needs.ts'
import { childKindsOf, type ChildNames } from '../../sync/child-kinds.ts'
import type { SyncContext } from '../../sync/context.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../../sync/protocol.ts'
import { coreRelated, ownRelatedKinds, relatedRules } from '../../sync/rules.ts'
import { checkContext } from '../common/check-context.ts'
import { exposedKinds, exposureRelated, externalUrl } from '../common/exposure.ts'
import { checkPodTemplate, mergeFailure, templateFailure } from '../common/pod-template.ts'
import { servedNames } from '../common/served-names.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { app, childrenOf, commonNeeds, configFile, container, generatedTemplate, port } from './children.ts'
import { catalogueReferences } from './references.ts'
import { type BuiltCatalogue, respond } from './respond.ts'
import { publishedServers } from './servers.ts'

type Context = SyncContext<'MCPCatalogue'>

const children = [
  'ServiceAccount',
  'ConfigMap',
  'Deployment',
  'Service',
  'PodDisruptionBudget',
  'HTTPRoute',
  'Ingress',
] as const
const listedKind = 'VirtualMCPServer'

export const mcpCatalogue: KindHooks<'MCPCatalogue'> = {
  kind: 'MCPCatalogue',
  childKinds: childKindsOf(children),
  relatedKinds: [
    ...ownRelatedKinds([...new Set([listedKind, ...kindsNamedBy(catalogueReferences), ...exposedKinds])]),
    coreRelated.Secret,
    ...childKindsOf(children),
  ],
  validate: violationsOf,
  customize,
  sync,
}

function customize({ parent }: CustomizeRequest, settings: HookSettings): CustomizeResponse {
  const names = catalogueNames(parent.metadata.name)
  const spec = fieldsOf(parent['spec'])
  const exposure = exposureRelated(spec)
  const { HorizontalPodAutoscaler: _, ...served } = servedNames(spec, names.server, settings)
  return relatedRules(parent, {
    kinds: [...new Set([listedKind, ...exposure.kinds])],
    named: namesByKind(catalogueReferences, parent),
    secrets: [textOf(exposure.secret)],
    own: {
      ...served,
      ServiceAccount: [names.server],
      ConfigMap: [names.config],
      Deployment: [names.server],
      Service: [names.server],
    } satisfies ChildNames<(typeof children)[number]>,
  })
}

function violationsOf(catalogue: MCPCatalogue, settings: CheckSettings): Violation[] {
  const { spec } = catalogue
  const generated = () =>
    generatedTemplate(checkContext(catalogue, 'MCPCatalogue', settings), new PodNeeds(), {
      restart: '',
      accountToken: false,
    })
  return [
    ...mergedTemplateViolations({ user: spec.podTemplateSpec, generated, container }),
    ...sizeViolations('spec.podTemplateSpec', 'a workload', spec.podTemplateSpec),
    ...metadataViolations(spec.exposure?.ingress, 'spec.exposure.ingress'),
  ]
}

function sync(context: Context): SyncResponse {
  return respond(context, build(context))
}

function build(context: Context): BuiltCatalogue {
  const { conditions, name, namespace, settings, spec } = context
  const url = serviceUrl(catalogueNames(name).server, namespace, settings.clusterDomain, port)
  const base = { url, externalUrl: undefined, hashes: {}, servers: undefined, children: undefined }
  const invalid = specFailure(context.violations, 'ConfigInvalid')
  conditions.check('Valid', invalid, 'ConfigValid', 'Spec validation passed')
  if (invalid) {
    checkPodTemplate(conditions, templateFailure(context.violations))
    return { ...base, failures: [invalid] }
  }
  const external = externalUrl(context, url)?.replace(/\/$/, '')
  const needs = new PodNeeds()
  commonNeeds(context, needs)
  const { values, failures, hashes } = resolveReferences(catalogueReferences, {
    context,
    needs,
    resource: external ?? url,
  })
  const servers = publishedServers(context)
  const known = { ...base, externalUrl: external, hashes, servers: servers.length }
  const file: input.CatalogueFile = {
    name,
    incomingAuth: definedFields({
      type: spec.incomingAuth.type,
      oidc: values.oidc?.oidc,
      authz: values.authz,
    }),
    servers: [...servers],
  }
  const pod = mergePodTemplate(
    generatedTemplate(context, needs, {
      restart: hashOf({ revision: needs.revisionHash ?? '' }),
      accountToken: values.oidc?.accountToken ?? false,
    }),
    { user: spec.podTemplateSpec, container, selector: selectorLabels(app, name) },
  )
  const template = pod.violations && mergeFailure(pod.violations)
  checkPodTemplate(conditions, template)
  const broken = [failures.oidc, failures.authz, template].filter((failure) => failure !== undefined)
  if (broken.length > 0 || !pod.template) return { ...known, failures: broken }
  const unusable = specFailure(validateRuntime('catalogue', file).violations, 'ConfigInvalid')
  const made = childrenOf(context, pod.template, { [configFile]: toYaml(file) })
  const failure = unusable ?? sizeFailure(made)
  return failure ? { ...known, failures: [failure] } : { ...known, children: made, failures: [] }
}
