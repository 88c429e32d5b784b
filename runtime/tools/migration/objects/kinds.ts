/**
 * Conversion rules for the kinds of toolhive.stacklok.dev, versions v1alpha1 and v1beta1 (same schema). The rules cover
 * fields whose names or formats differ. Fields without a rule stay unchanged.
 */
import type { MigrationDraft, ObjectContext } from './draft.ts'
import { convertAuthServer } from './auth-server-rules.ts'
import { convertInlineOidc, convertInlineTelemetry, convertInlineTools } from './inline-settings.ts'
import {
  convertImage,
  convertProxyOverrides,
  convertVirtualServer,
  noteProfile,
  renameContainer,
} from './shared-rules.ts'
import { convertWebhooks } from './webhook-rules.ts'
import { convertWorkflow } from './workflow-rules.ts'
import { convertPolicies } from './policy-rules.ts'

type Rules = (draft: MigrationDraft, context: ObjectContext) => void

const same: Rules = () => {}

export const kindRules: Readonly<Record<string, Rules>> = {
  MCPGroup: same,
  MCPServerEntry: (draft) => draft.rename('spec.remoteURL', 'remoteUrl'),
  MCPOIDCConfig: same,
  MCPTelemetryConfig: same,
  MCPToolConfig: same,
  MCPWebhookConfig: convertWebhooks,
  MCPAuthzConfig: (draft) => {
    convertPolicies(draft, 'spec.config.entities_json')
    if (draft.value('spec.type') !== 'httpv1') return
    draft.note(
      'spec.type',
      'differs',
      'MCPServer and MCPRemoteProxy use the decision point; responses must be application/json, and redirects are not followed. For a VirtualMCPServer, set the decision point in incomingAuth.authzConfig, with type httpv1',
    )
  },
  EmbeddingServer: (draft) => draft.rename('spec.resourceOverrides.deployment', 'statefulSet'),
  VirtualMCPCompositeToolDefinition: (draft, { tools }) => convertWorkflow(draft, 'spec', tools),
  MCPServer: mcpServer,
  MCPRemoteProxy: remoteProxy,
  MCPExternalAuthConfig: externalAuth,
  VirtualMCPServer: virtualServer,
}

/** Kinds that have no counterpart, each with the reason. */
export const absentKinds: Readonly<Record<string, string>> = {
  MCPRegistry: 'the gateway has no server registry',
}

function mcpServer(draft: MigrationDraft, context: ObjectContext): void {
  draft.rename('spec.port', 'proxyPort')
  draft.rename('spec.targetPort', 'mcpPort')
  proxySettings(draft, context)
  convertInlineTools(draft, 'spec.tools', context)
  convertInlineTools(draft, 'spec.toolsFilter', context)
  noteProfile(draft)
  convertImage(draft)
}

function remoteProxy(draft: MigrationDraft, context: ObjectContext): void {
  draft.rename('spec.remoteURL', 'remoteUrl')
  draft.rename('spec.port', 'proxyPort')
  proxySettings(draft, context)
  renameContainer(draft, 'toolhive', 'gatehouse')
}

function proxySettings(draft: MigrationDraft, context: ObjectContext): void {
  convertInlineOidc(draft, 'spec.oidcConfig', context)
  convertInlineTelemetry(draft, context)
  convertProxyOverrides(draft)
  convertPolicies(draft, 'spec.authzConfig.inline.entitiesJson')
}

function externalAuth(draft: MigrationDraft): void {
  draft.revalue('spec.type', { awsSts: 'cloudSts' })
  draft.rename('spec.awsSts', 'cloudSts')
  const exchange = 'spec.tokenExchange'
  for (const { parent, key, value, path } of draft.fieldsAt(`${exchange}.scope`)) {
    if ('scopes' in parent) continue
    delete parent[key]
    parent['scopes'] = String(value).split(/\s+/).filter(Boolean)
    draft.note(path, 'renamed', 'is now the list scopes')
  }
  for (const field of [
    'token_url',
    'client_id',
    'client_secret_ref',
    'external_token_header_name',
    'subject_token_type',
  ]) {
    draft.rename(`${exchange}.${field}`, camelCase(field))
  }
  convertAuthServer(draft, 'spec.embeddedAuthServer', undefined)
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** Settings that used to be next to `config` and are now inside it. */
const movedToConfig = [
  'aggregation',
  'operational',
  'compositeTools',
  'compositeToolRefs',
  'optimizer',
  'codeMode',
  'audit',
]

function virtualServer(draft: MigrationDraft, context: ObjectContext): void {
  for (const field of movedToConfig) draft.move(`spec.${field}`, ['spec', 'config', field])
  if (draft.value('spec.groupRef') === undefined)
    draft.move('spec.config.groupRef', ['spec', 'groupRef', 'name'])
  convertInlineOidc(draft, 'spec.incomingAuth.oidcConfig', context)
  convertPolicies(draft, 'spec.incomingAuth.authzConfig.inline.entitiesJson')
  convertVirtualServer(draft, 'spec.config', context.tools)
  convertAuthServer(draft, 'spec.authServerConfig', draft.value('spec.incomingAuth.oidcConfigRef.scopes'))
}
