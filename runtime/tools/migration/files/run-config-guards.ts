/**
 * Converts a server's protections. A protection without a counterpart prevents the conversion, because the server would
 * run without it.
 */
import { fieldsOf } from '../../../../schemas/index.ts'
import { convertWebhookFields } from './webhooks.ts'
import type { RunConfigParts } from './reader.ts'

/** Fields that configure protections and are not converted. */
const refusedFields: Readonly<Record<string, string>> = {
  authz_config_path: 'the policies are in another file: move them to authz_config, or convert that file',
  upstream_swap_config: 'the embedded authorization server is not converted: write an MCPExternalAuthConfig',
  embedded_auth_server_config:
    'the embedded authorization server is not converted: write an MCPExternalAuthConfig',
  aws_sts_config: 'is not converted: write an MCPExternalAuthConfig of type cloudSts',
}

/** Middlewares that protect a server, each with its equivalent field. */
const guardingMiddleware: Readonly<Record<string, string>> = {
  authorization: 'authz_config',
  'tool-filter': 'tools_filter',
  'tool-call-filter': 'tools_filter',
  ratelimit: 'rate_limit_config',
  tokenexchange: 'token_exchange_config',
  'validating-webhook': 'validating_webhooks',
  'mutating-webhook': 'mutating_webhooks',
  awssts: 'aws_sts_config',
  upstreamswap: 'upstream_swap_config',
}

export function convertGuards(parts: RunConfigParts): void {
  const { reader, draft } = parts
  convertPolicyField(parts)
  convertWebhookFields(parts)
  for (const [field, text] of Object.entries(refusedFields)) {
    const value = reader.raw(field)
    const isSet = Array.isArray(value) ? value.length > 0 : value !== undefined && value !== ''
    if (isSet) draft.note(field, 'refused', text)
  }
  const origins = reader.texts('allowed_origins')
  if (origins.length > 0)
    draft.note(
      'allowed_origins',
      'differs',
      'browsers from all other origins are rejected, including the listed ones',
    )
  noteMiddlewares(parts)
}

function convertPolicyField({ reader, draft }: RunConfigParts): void {
  const config = reader.fields('authz_config')
  if (!config) return
  const { policies: policyTexts, entities_json: entitiesJson } = fieldsOf(config['cedar'])
  if (config['type'] !== 'cedarv1' || !Array.isArray(policyTexts)) {
    draft.note(
      'authz_config',
      'refused',
      'only policies of type cedarv1 are converted: a decision point (httpv1) requires an MCPAuthzConfig; convert its file',
    )
    return
  }
  const inline = {
    policies: policyTexts as unknown,
    ...(typeof entitiesJson === 'string' && { entitiesJson }),
  }
  draft.doc['spec'] = { ...fieldsOf(draft.doc['spec']), authzConfig: { type: 'inline', inline } }
}

function noteMiddlewares({ reader, draft }: RunConfigParts): void {
  for (const list of ['middleware_configs', 'additional_middleware_configs']) {
    const value = reader.raw(list)
    if (!Array.isArray(value)) continue
    for (const [index, entry] of value.entries()) {
      const type = String(fieldsOf(entry)['type'])
      const field = guardingMiddleware[type]
      // The file usually contains this setting twice.
      const isInField = field !== undefined && hasValue(reader.raw(field))
      if (list === 'additional_middleware_configs' || (field !== undefined && !isInField)) {
        draft.note(`${list}[${index}]`, 'refused', `middleware ${type} is not converted`)
      }
    }
  }
}

function hasValue(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
