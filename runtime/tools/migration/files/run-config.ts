/**
 * Converts a server's configuration from a developer's machine (`thv export`, or a file from its state folder) to an
 * MCPServer or MCPRemoteProxy. Also creates the objects that the resource refers to.
 *
 * The file does not contain secret values, so the created Secret contains the keys with empty values.
 */
import { apiVersion, exactJson, type Fields } from '../../../../schemas/index.ts'
import { objectName } from '../../../toolkit/clients/index.ts'
import { MigrationDraft, type ObjectContext } from '../objects/draft.ts'
import { settle } from '../objects/object.ts'
import { convertImage, noteProfile } from '../objects/shared-rules.ts'
import { Reader, type RunConfigParts } from './reader.ts'
import { convertGuards } from './run-config-guards.ts'
import { headerSpec, remoteSpec } from './run-config-remote.ts'
import { settingsOf } from './run-config-settings.ts'
import { variablesOf } from './run-config-variables.ts'

export function isRunConfig(doc: Fields): boolean {
  if (doc['apiVersion'] !== undefined) return false
  const hasTarget = typeof doc['image'] === 'string' || typeof doc['remote_url'] === 'string'
  return hasTarget && ('schema_version' in doc || 'transport' in doc)
}

export function convertRunConfig(doc: Fields, context: ObjectContext): MigrationDraft {
  const reader = new Reader(doc)
  const wanted = reader.text('base_name') ?? reader.text('container_name') ?? reader.text('name') ?? 'server'
  const name = objectName(wanted)
  reader.ignore('base_name', 'container_name', 'name')
  const remoteUrl = reader.text('remote_url')
  const draft = new MigrationDraft({
    apiVersion,
    kind: remoteUrl === undefined ? 'MCPServer' : 'MCPRemoteProxy',
    metadata: { name },
  })
  const parts = { reader, name, draft, context }
  draft.doc['spec'] = {
    ...group(parts),
    ...(remoteUrl === undefined ? serverSpec(parts) : remoteSpec(parts, remoteUrl)),
    ...headerSpec(parts, remoteUrl !== undefined),
    ...sharedSpec(parts),
    ...settingsOf(parts),
  }
  convertGuards(parts)
  ignoreLocal(parts)
  for (const field of reader.rest()) draft.note(field, 'lost', 'has no counterpart')
  if (remoteUrl === undefined) {
    noteProfile(draft)
    convertImage(draft, builderOf(doc))
  }
  settle(draft, context)
  return draft
}

function group({ reader, context }: RunConfigParts): Fields {
  const wanted = reader.text('group')
  if (wanted === undefined) return {}
  const name = objectName(wanted)
  context.share('MCPGroup', name, { spec: { description: `Group ${wanted}` } })
  return { groupRef: { name } }
}

function serverSpec(parts: RunConfigParts): Fields {
  const { reader } = parts
  const transport = reader.text('transport') ?? 'stdio'
  const mode = reader.text('proxy_mode')
  const port = reader.number('target_port')
  const args = reader.texts('cmd_args')
  return {
    image: reader.text('image'),
    transport,
    ...(transport === 'stdio' && mode !== undefined && { proxyMode: mode }),
    ...(transport !== 'stdio' && port !== undefined && { mcpPort: port }),
    ...(args.length > 0 && { args }),
    ...variablesOf(parts),
    ...volumes(parts),
    ...profile(parts),
    ...template(parts),
  }
}

function volumes({ reader, draft }: RunConfigParts): Fields {
  const found = reader.texts('volumes').flatMap((text, index) => {
    const [, hostPath = '', mountPath = '', mode] = /^(.+?):([^:]+)(?::(ro|rw))?$/.exec(text) ?? []
    if (!hostPath.startsWith('/')) {
      draft.note(`volumes[${index}]`, 'lost', 'is not the absolute path of a folder')
      return []
    }
    draft.note(`volumes[${index}]`, 'differs', 'refers to a folder on the pod’s node')
    return [{ name: `volume-${index + 1}`, hostPath, mountPath, ...(mode === 'ro' && { readOnly: true }) }]
  })
  return found.length > 0 ? { volumes: found } : {}
}

/** The profile was enforced only if the network was isolated. When hosts cannot be listed, all traffic is denied. */
function profile({ reader, draft }: RunConfigParts): Fields {
  const isolated = reader.flag('isolate_network')
  const name = reader.text('permission_profile_name_or_path')
  const settings = reader.fields('permission_profile') ?? {}
  const paths = [settings['read'], settings['write']].some((list) => Array.isArray(list) && list.length > 0)
  if (paths)
    draft.note('permission_profile', 'lost', 'folders in the profile are not mounted: add them to volumes')
  if (!isolated) return {}
  const network = settings['network'] as
    | { outbound?: { insecure_allow_all?: boolean; allow_host?: unknown } }
    | undefined
  if (name === 'network' || network?.outbound?.insecure_allow_all === true)
    return { permissionProfile: { type: 'builtin', name: 'network' } }
  if (network?.outbound?.allow_host !== undefined)
    draft.note(
      'permission_profile',
      'lost',
      'hosts cannot be listed: all outgoing traffic from the pod is denied',
    )
  return { permissionProfile: { type: 'builtin', name: 'none' } }
}

function template({ reader, draft }: RunConfigParts): Fields {
  const text = reader.text('k8s_pod_template_patch')
  if (text === undefined) return {}
  try {
    return { podTemplateSpec: exactJson(text) }
  } catch {
    draft.note('k8s_pod_template_patch', 'lost', 'is not valid JSON')
    return {}
  }
}

function sharedSpec({ reader, draft }: RunConfigParts): Fields {
  const port = reader.number('port')
  const prefix = reader.text('endpoint_prefix')
  if (reader.flag('stateless'))
    draft.note('stateless', 'differs', 'the proxy forwards the server’s 405 instead of sending its own')
  if (reader.text('session_ttl') !== undefined)
    draft.note('session_ttl', 'differs', 'the server behind the proxy determines the session lifetime')
  if (reader.flag('strict_protocol_validation'))
    draft.note('strict_protocol_validation', 'differs', 'unknown protocol revisions are always rejected')
  const audited = reader.fields('audit_config') ?? reader.text('audit_config_path')
  return {
    ...(port !== undefined && { proxyPort: port }),
    ...(prefix !== undefined && { endpointPrefix: prefix }),
    ...(reader.flag('trust_proxy_headers') && { trustProxyHeaders: true }),
    ...(audited !== undefined && { audit: { enabled: true } }),
  }
}

/** Ignores fields that describe the machine rather than the server. */
function ignoreLocal({ reader }: RunConfigParts): void {
  reader.ignore(
    'schema_version',
    'mcpserver_generation',
    'registry_api_url',
    'registry_url',
    'registry_server_name',
    'image',
    'transport',
    'proxy_mode',
    'target_port',
    'target_host',
    'host',
    'debug',
    'container_labels',
    'env_file_dir',
    'thv_ca_bundle',
    'jwks_auth_token_file',
    'runtime_config',
    'permission_profile_name_or_path',
    'permission_profile',
    'isolate_network',
    'rate_limit_namespace',
  )
}

function builderOf(doc: Fields): string | undefined {
  const config = doc['runtime_config'] as { builder_image?: unknown } | undefined
  return typeof config?.builder_image === 'string' && config.builder_image !== ''
    ? config.builder_image
    : undefined
}
