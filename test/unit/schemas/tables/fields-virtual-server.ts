/** Field lists of docs/specification/virtual-server.md. */
import { type Fields, type Kinds, list, under } from './field-list.ts'
import { authServerFields, cloudSts } from './fields-external-auth.ts'

const annotations = list(`
  title string
  readOnlyHint boolean
  destructiveHint boolean
  idempotentHint boolean
  openWorldHint boolean`)

export const override: Fields = {
  '': list(`
    name string
    description string
    annotations object`),
  annotations,
}

export const compositeTool: Fields = {
  '': list(`
    name! string
    description string
    parameters free
    steps! list of object
    timeout string
    output object`),
  annotations,
  output: list(`
    properties! map to object
    required list of string`),
  'output.properties{}': list(`
    type! string
    description string
    value string
    properties free
    default free`),
  'steps[]': list(`
    id! string
    type string
    tool string
    arguments free
    condition string
    dependsOn list of string
    defaultResults free
    timeout string
    onError object
    message string
    schema free
    onDecline object
    onCancel object
    collection string
    itemVar string
    maxIterations int32
    maxParallel int32
    step object`),
  'steps[].onError': list(`
    action string
    retryCount int32
    retryDelay string`),
  'steps[].onDecline': list('action string'),
  'steps[].onCancel': list('action string'),
  'steps[].step': list(`
    id string
    type string
    tool! string
    arguments free
    condition string
    timeout string
    onError object`),
  'steps[].step.onError': list(`
    action string
    retryCount int32
    retryDelay string`),
}

const strategy: Fields = {
  '': list(`
    type! string
    cloudSts object
    headerInjection object
    tokenExchange object
    upstreamInject object
    obo object
    xaa object`),
  ...under('cloudSts', cloudSts),
  headerInjection: list(`
    headerName! string
    headerValue string
    headerValueEnv string`),
  tokenExchange: list(`
    tokenUrl! string
    audience string
    clientId string
    clientSecret string
    clientSecretEnv string
    scopes list of string
    subjectProviderName string
    subjectTokenType string`),
  upstreamInject: list('providerName! string'),
  obo: list(`
    tokenUrl! string
    clientId string
    clientSecret string
    clientSecretEnv string
    audience string
    scopes list of string
    subjectTokenProviderName string
    cacheSkewSeconds int32`),
  xaa: list(`
    idpTokenUrl! string
    idpClientId string
    idpClientSecret string
    idpClientSecretEnv string
    targetTokenUrl! string
    insecureTargetTokenUrl boolean
    targetClientId string
    targetClientSecret string
    targetClientSecretEnv string
    targetAudience! string
    targetResource string
    scopes list of string
    subjectProviderName string
    subjectTokenType string`),
}

const bucket = list(`
  maxTokens! int32
  refillPeriod! string`)

export const rateLimiting: Fields = {
  '': list(`
    perUser object
    shared object
    tools list of object`),
  perUser: bucket,
  shared: bucket,
  'tools[]': list(`
    name! string
    perUser object
    shared object`),
  'tools[].perUser': bucket,
  'tools[].shared': bucket,
}

export const authz: Fields = {
  '': list(`
    type! string
    configMap object
    inline object
    groupClaimName string
    roleClaimName string
    groupEntityType string`),
  configMap: list(`
    name! string
    key string`),
  inline: list(`
    policies! list of string
    entitiesJson string
    primaryUpstreamProvider string`),
}

export const sessionFields = ['provider', 'address', 'db', 'keyPrefix']
export const session = list(`
  provider! string
  address string
  db int32
  keyPrefix string
  passwordRef object`)

const config: Fields = {
  '': list(`
    name string
    groupRef string
    metadata map to string
    aggregation object
    audit object
    backends list of object
    codeMode object
    compositeToolRefs list of object
    compositeTools list of object
    incomingAuth object
    outgoingAuth object
    operational object
    optimizer object
    passthroughHeaders list of string
    rateLimiting object
    sessionStorage object
    telemetry object`),
  aggregation: list(`
    conflictResolution string
    conflictResolutionConfig object
    excludeAllTools boolean
    tools list of object`),
  'aggregation.conflictResolutionConfig': list(`
    prefixFormat string
    priorityOrder list of string`),
  'aggregation.tools[]': list(`
    workload! string
    excludeAll boolean
    filter list of string
    overrides map to object
    toolConfigRef object`),
  ...under('aggregation.tools[].overrides{}', override),
  audit: list(`
    enabled boolean
    component string
    detectApplicationErrors boolean
    eventTypes list of string
    excludeEventTypes list of string
    includeRequestData boolean
    includeResponseData boolean
    logFile string
    maxDataSize int32`),
  'backends[]': list(`
    name! string
    url! string
    transport! string
    type string
    caBundlePath string
    metadata map to string`),
  codeMode: list(`
    enabled boolean
    parallelMaxConcurrency int32
    stepLimit int64
    toolCallTimeout string`),
  ...under('compositeTools[]', compositeTool),
  incomingAuth: list(`
    type! string
    oidc object
    authz object`),
  'incomingAuth.oidc': list(`
    issuer! string
    audience! string
    clientId! string
    clientSecretEnv string
    insecureAllowHttp boolean
    introspectionUrl string
    jwksUrl string
    jwksAllowPrivateIp boolean
    protectedResourceAllowPrivateIp boolean
    resource string
    scopes list of string`),
  'incomingAuth.authz': list(`
    type! string
    policies list of string
    entitiesJson string
    groupClaimName string
    roleClaimName string
    groupEntityType string
    primaryUpstreamProvider string`),
  outgoingAuth: list(`
    source! string
    default object
    backends map to object`),
  ...under('outgoingAuth.default', strategy),
  ...under('outgoingAuth.backends{}', strategy),
  operational: list(`
    logLevel string
    timeouts object
    failureHandling object`),
  'operational.timeouts': list(`
    default string
    perWorkload map to string`),
  'operational.failureHandling': list(`
    healthCheckInterval string
    healthCheckTimeout string
    unhealthyThreshold int32
    partialFailureMode string
    statusReportingInterval string
    circuitBreaker object`),
  'operational.failureHandling.circuitBreaker': list(`
    enabled boolean
    failureThreshold int32
    timeout string`),
  optimizer: list(`
    embeddingProvider string
    embeddingService string
    embeddingModel string
    embeddingServiceTimeout string
    hybridSearchSemanticRatio string
    maxToolsToReturn int32
    semanticDistanceThreshold string`),
  ...under('rateLimiting', rateLimiting),
  sessionStorage: list(`
    provider! string
    address string
    db int32
    keyPrefix string`),
  telemetry: list(`
    caCertPath string
    customAttributes map to string
    enablePrometheusMetricsPath boolean
    endpoint string
    environmentVariables list of string
    headers map to string
    insecure boolean
    metricsEnabled boolean
    samplingRate string
    serviceName string
    serviceVersion string
    tracingEnabled boolean
    useLegacyAttributes boolean`),
}

const backendAuth = list(`
  type! string
  externalAuthConfigRef object`)

/** docs/specification/virtual-server.md. */
export const virtualServerFields: Kinds = {
  VirtualMCPServer: {
    spec: list(`
      groupRef! object
      incomingAuth! object
      outgoingAuth object
      authServerConfig object
      config object
      embeddingServerRef object
      imagePullSecrets list of object
      passthroughHeaders list of string
      podTemplateSpec free
      replicas int32
      serviceAccount string
      serviceType string
      sessionAffinity string
      sessionStorage object
      telemetryConfigRef object`),
    'spec.groupRef': list('name! string'),
    'spec.embeddingServerRef': list('name! string'),
    'spec.imagePullSecrets[]': list('name string'),
    'spec.telemetryConfigRef': list(`
      name! string
      serviceName string`),
    'spec.incomingAuth': list(`
      type! string
      oidcConfigRef object
      authzConfig object
      authzConfigRef object`),
    'spec.incomingAuth.oidcConfigRef': list(`
      name! string
      audience! string
      resourceUrl string
      scopes list of string`),
    'spec.incomingAuth.authzConfigRef': list('name! string'),
    ...under('spec.incomingAuth.authzConfig', authz),
    'spec.outgoingAuth': list(`
      source string
      default object
      backends map to object`),
    'spec.outgoingAuth.default': backendAuth,
    'spec.outgoingAuth.backends{}': backendAuth,
    'spec.sessionStorage': session,
    ...under('spec.authServerConfig', authServerFields),
    ...under('spec.config', config),
    status: list(`
      phase string
      message string
      url string
      backendCount int32
      conditions list of object
      discoveredBackends list of object
      observedGeneration int64
      authzConfigHash string
      oidcConfigHash string
      telemetryConfigHash string`),
    'status.discoveredBackends[]': list(`
      name! string
      url string
      status string
      message string
      authType string
      authConfigRef string
      lastHealthCheck date-time
      consecutiveFailures int32
      circuitBreakerState string
      circuitLastChanged date-time`),
  },
}
