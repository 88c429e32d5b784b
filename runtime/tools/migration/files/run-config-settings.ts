/** Converts settings that become separate objects in a cluster, and settings whose form stays the same. */
import { type Fields, fieldsOf } from '../../../../schemas/index.ts'
import { looseFields, renamedFields, type RunConfigParts } from './reader.ts'

export function settingsOf(parts: RunConfigParts): Fields {
  return { ...oidc(parts), ...telemetry(parts), ...tools(parts), ...exchange(parts), ...scaling(parts) }
}

function oidc({ reader, name, draft, context }: RunConfigParts): Fields {
  const config = reader.fields('oidc_config')
  if (!config || looseFields(config).size === 0) return {}
  const inline = renamedFields(config, {
    issuer: 'issuer',
    jwksurl: 'jwksUrl',
    introspectionurl: 'introspectionUrl',
    clientid: 'clientId',
    authtokenfile: 'jwksAuthTokenPath',
    allowprivateip: 'jwksAllowPrivateIP',
    insecureallowhttp: 'insecureAllowHTTP',
  })
  const loose = looseFields(config)
  if (loose.has('cacertpath'))
    draft.note(
      'oidc_config',
      'lost',
      'the CA file exists only on one machine: store it in a ConfigMap, and refer to the ConfigMap in caBundleRef',
    )
  const secret = loose.get('clientsecret')
  const key = 'client-secret'
  const clientSecretRef =
    typeof secret === 'string'
      ? {
          name: context.add('Secret', `${name}-oidc`, { type: 'Opaque', stringData: { [key]: secret } }),
          key,
        }
      : undefined
  const spec = { type: 'inline', inline: { ...inline, ...(clientSecretRef && { clientSecretRef }) } }
  const reference = renamedFields(config, {
    audience: 'audience',
    resourceurl: 'resourceUrl',
    scopes: 'scopes',
  })
  return { oidcConfigRef: { name: context.add('MCPOIDCConfig', `${name}-oidc`, { spec }), ...reference } }
}

function telemetry({ reader, name, context }: RunConfigParts): Fields {
  const config = reader.fields('telemetry_config')
  if (!config) return {}
  const { serviceName } = config
  const openTelemetry = {
    enabled: true,
    ...renamedFields(config, {
      endpoint: 'endpoint',
      insecure: 'insecure',
      headers: 'headers',
      customattributes: 'resourceAttributes',
    }),
    metrics: { enabled: config['metricsEnabled'] === true },
    tracing: {
      enabled: config['tracingEnabled'] === true,
      ...(typeof config['samplingRate'] === 'string' && { samplingRate: config['samplingRate'] }),
    },
  }
  const hasEndpoint = typeof config['endpoint'] === 'string' && config['endpoint'] !== ''
  const spec = {
    ...(hasEndpoint && { openTelemetry }),
    prometheus: { enabled: config['enablePrometheusMetricsPath'] === true },
  }
  const made = context.add('MCPTelemetryConfig', `${name}-telemetry`, { spec })
  return { telemetryConfigRef: { name: made, ...(typeof serviceName === 'string' && { serviceName }) } }
}

function tools({ reader, name, context }: RunConfigParts): Fields {
  const filter = reader.texts('tools_filter')
  const overrides = reader.fields('tools_override')
  if (filter.length === 0 && !overrides) return {}
  const spec = {
    ...(filter.length > 0 && { toolsFilter: filter }),
    ...(overrides && { toolsOverride: overrides }),
  }
  return { toolConfigRef: { name: context.add('MCPToolConfig', `${name}-tools`, { spec }) } }
}

function exchange({ reader, name, draft, context }: RunConfigParts): Fields {
  const config = reader.fields('token_exchange_config')
  if (!config) return {}
  const fixed = looseFields(reader.fields('remote_auth_config') ?? {})
  if (fixed.has('bearertoken') || fixed.has('bearertokenfile'))
    draft.note(
      'token_exchange_config',
      'refused',
      'cannot be combined with a bearer token, because there is only one externalAuthConfigRef',
    )
  const settings = renamedFields(config, {
    tokenurl: 'tokenUrl',
    clientid: 'clientId',
    audience: 'audience',
    scopes: 'scopes',
    subjecttokentype: 'subjectTokenType',
    externaltokenheadername: 'externalTokenHeaderName',
  })
  const secret = looseFields(config).get('clientsecret')
  const key = 'client-secret'
  const clientSecretRef =
    typeof secret === 'string'
      ? {
          name: context.add('Secret', `${name}-exchange`, { type: 'Opaque', stringData: { [key]: secret } }),
          key,
        }
      : undefined
  const spec = {
    type: 'tokenExchange',
    tokenExchange: { ...settings, ...(clientSecretRef && { clientSecretRef }) },
  }
  return {
    externalAuthConfigRef: { name: context.add('MCPExternalAuthConfig', `${name}-exchange`, { spec }) },
  }
}

function scaling({ reader, draft }: RunConfigParts): Fields {
  const config = reader.fields('scaling_config')
  const limits = reader.fields('rate_limit_config')
  const replicas = config?.['backend_replicas']
  const { address, db, key_prefix: keyPrefix } = fieldsOf(config?.['session_redis'])
  if (typeof address === 'string')
    draft.note(
      'scaling_config.session_redis',
      'differs',
      'in passwordRef, refer to the Secret that contains the password',
    )
  return {
    ...(typeof replicas === 'number' && { backendReplicas: replicas }),
    ...(typeof address === 'string' && {
      sessionStorage: {
        provider: 'redis',
        address,
        ...(typeof db === 'number' && { db }),
        ...(typeof keyPrefix === 'string' && keyPrefix !== '' && { keyPrefix }),
      },
    }),
    ...(limits && { rateLimiting: limits }),
  }
}
