/** Field lists of the kinds that the spec documents name and do not define. */
import { type Fields, type Kinds, list, under } from './field-list.ts'
import { configStatus } from './fields-external-auth.ts'
import { authz, compositeTool, override, rateLimiting, session } from './fields-virtual-server.ts'

const metadata = list(`
  annotations map to string
  labels map to string`)

const resources: Fields = {
  'spec.resources': list(`
    limits object
    requests object`),
  'spec.resources.limits': list(`
    cpu string
    memory string`),
  'spec.resources.requests': list(`
    cpu string
    memory string`),
}

const proxyOverrides: Fields = {
  'spec.resourceOverrides': list(`
    proxyDeployment object
    proxyService object`),
  'spec.resourceOverrides.proxyDeployment': list(`
    annotations map to string
    labels map to string
    podTemplateMetadataOverrides object
    env list of object
    imagePullSecrets list of object`),
  'spec.resourceOverrides.proxyDeployment.env[]': list(`
    name! string
    value! string`),
  'spec.resourceOverrides.proxyDeployment.podTemplateMetadataOverrides': metadata,
  'spec.resourceOverrides.proxyService': metadata,
}

const bundle: Fields = {
  configMapRef: list(`
    name! string
    key string
    optional boolean`),
}

const headerForward: Fields = {
  'spec.headerForward': list(`
    addPlaintextHeaders map to string
    addHeadersFromSecret list of object`),
  'spec.headerForward.addHeadersFromSecret[]': list(`
    headerName! string
    valueSecretRef! object`),
}

/** Kinds that the spec documents name and do not define. */
export const otherFields: Kinds = {
  MCPGroup: {
    spec: list('description string'),
    status: list(`
      phase string
      servers list of string
      serverCount int32
      remoteProxies list of string
      remoteProxyCount int32
      entries list of string
      entryCount int32
      observedGeneration int64
      conditions list of object`),
  },
  MCPServer: {
    spec: list(`
      image! string
      transport string
      proxyMode string
      proxyPort int32
      mcpPort int32
      args list of string
      env list of object
      volumes list of object
      resources object
      secrets list of object
      serviceAccount string
      permissionProfile object
      podTemplateSpec free
      resourceOverrides object
      oidcConfigRef object
      authzConfig object
      authzConfigRef object
      audit object
      toolConfigRef object
      externalAuthConfigRef object
      authServerRef object
      telemetryConfigRef object
      groupRef object
      trustProxyHeaders boolean
      endpointPrefix string
      sessionAffinity string
      replicas int32
      backendReplicas int32
      sessionStorage object
      rateLimiting object`),
    'spec.env[]': list(`
      name! string
      value! string`),
    'spec.volumes[]': list(`
      name! string
      hostPath! string
      mountPath! string
      readOnly boolean`),
    'spec.secrets[]': list(`
      name! string
      key! string
      targetEnvName string`),
    'spec.permissionProfile': list(`
      type! string
      name! string
      key string`),
    'spec.audit': list('enabled boolean'),
    'spec.authServerRef': list(`
      kind! string
      name! string`),
    ...resources,
    ...proxyOverrides,
    ...under('spec.authzConfig', authz),
    ...under('spec.rateLimiting', rateLimiting),
    'spec.sessionStorage': session,
    status: list(`
      phase string
      message string
      url string
      readyReplicas int32
      toolConfigHash string
      externalAuthConfigHash string
      authServerConfigHash string
      authzConfigHash string
      oidcConfigHash string
      telemetryConfigHash string
      observedGeneration int64
      conditions list of object`),
  },
  MCPRemoteProxy: {
    spec: list(`
      remoteUrl! string
      allowPrivateEndpoint boolean
      transport string
      proxyPort int32
      oidcConfigRef object
      externalAuthConfigRef object
      authServerRef object
      toolConfigRef object
      telemetryConfigRef object
      groupRef object
      headerForward object
      authzConfig object
      authzConfigRef object
      audit object
      resources object
      serviceAccount string
      trustProxyHeaders boolean
      endpointPrefix string
      resourceOverrides object
      sessionAffinity string
      replicas int32
      sessionStorage object
      podTemplateSpec free`),
    'spec.audit': list('enabled boolean'),
    ...resources,
    ...proxyOverrides,
    ...headerForward,
    ...under('spec.authzConfig', authz),
    'spec.sessionStorage': session,
    status: list(`
      phase string
      message string
      url string
      externalUrl string
      toolConfigHash string
      telemetryConfigHash string
      externalAuthConfigHash string
      authServerConfigHash string
      authzConfigHash string
      oidcConfigHash string
      observedGeneration int64
      conditions list of object`),
  },
  MCPServerEntry: {
    spec: list(`
      remoteUrl! string
      transport! string
      groupRef! object
      allowPrivateEndpoint boolean
      externalAuthConfigRef object
      headerForward object
      caBundleRef object`),
    ...headerForward,
    'spec.caBundleRef': list('configMapRef! object'),
    ...under('spec.caBundleRef', bundle),
    status: list(`
      phase string
      observedGeneration int64
      conditions list of object`),
  },
  MCPOIDCConfig: {
    spec: list(`
      type! string
      kubernetesServiceAccount object
      inline object`),
    'spec.kubernetesServiceAccount': list(`
      serviceAccount string
      namespace string
      issuer string
      jwksUrl string
      introspectionUrl string
      useClusterAuth boolean`),
    'spec.inline': list(`
      issuer! string
      jwksUrl string
      introspectionUrl string
      clientId string
      clientSecretRef object
      caBundleRef object
      jwksAuthTokenPath string
      jwksAllowPrivateIP boolean
      protectedResourceAllowPrivateIP boolean
      insecureAllowHTTP boolean`),
    ...configStatus,
  },
  MCPAuthzConfig: {
    spec: list(`
      type! string
      config! free`),
    ...configStatus,
  },
  MCPTelemetryConfig: {
    spec: list(`
      openTelemetry object
      prometheus object`),
    'spec.prometheus': list('enabled boolean'),
    'spec.openTelemetry': list(`
      enabled boolean
      endpoint string
      insecure boolean
      headers map to string
      sensitiveHeaders list of object
      resourceAttributes map to string
      metrics object
      tracing object
      useLegacyAttributes boolean
      caBundleRef object`),
    'spec.openTelemetry.metrics': list('enabled boolean'),
    'spec.openTelemetry.tracing': list(`
      enabled boolean
      samplingRate string`),
    'spec.openTelemetry.sensitiveHeaders[]': list(`
      name! string
      secretKeyRef! object`),
    ...configStatus,
  },
  MCPToolConfig: {
    spec: list(`
      toolsFilter list of string
      toolsOverride map to object`),
    ...under('spec.toolsOverride{}', override),
    ...configStatus,
  },
  EmbeddingServer: {
    spec: list(`
      model string
      image string
      imagePullPolicy string
      port int32
      replicas int32
      args list of string
      env list of object
      hfTokenSecretRef object
      resources object
      modelCache object
      podTemplateSpec free
      resourceOverrides object`),
    'spec.env[]': list(`
      name! string
      value! string`),
    ...resources,
    'spec.modelCache': list(`
      enabled boolean
      storageClassName string
      size string
      accessMode string`),
    'spec.resourceOverrides': list(`
      statefulSet object
      service object
      persistentVolumeClaim object`),
    'spec.resourceOverrides.statefulSet': list(`
      annotations map to string
      labels map to string
      podTemplateMetadataOverrides object`),
    'spec.resourceOverrides.statefulSet.podTemplateMetadataOverrides': metadata,
    'spec.resourceOverrides.service': metadata,
    'spec.resourceOverrides.persistentVolumeClaim': metadata,
    status: list(`
      phase string
      message string
      url string
      readyReplicas int32
      observedGeneration int64
      conditions list of object`),
  },
  VirtualMCPCompositeToolDefinition: {
    ...under('spec', compositeTool),
    status: list(`
      validationStatus string
      validationErrors list of string
      referencingVirtualServers list of string
      observedGeneration int64
      conditions list of object`),
  },
}
