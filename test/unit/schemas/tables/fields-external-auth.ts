/** Field lists of docs/specification/external-auth.md. */
import { type Fields, type Kinds, list, under } from './field-list.ts'

export const configStatus = {
  status: list(`
    conditions list of object
    configHash string
    observedGeneration int64
    referenceCount int32
    referencingWorkloads list of object`),
  'status.referencingWorkloads[]': list(`
    kind! string
    name! string`),
  'status.conditions[]': list(`
    type! string
    status! string
    reason! string
    message! string
    lastTransitionTime! date-time
    observedGeneration int64`),
}

const userInfo = {
  '': list(`
    endpointUrl! string
    httpMethod string
    additionalHeaders map to string
    fieldMapping object`),
  fieldMapping: list(`
    subjectFields list of string
    nameFields list of string
    emailFields list of string`),
}

/** docs/specification/external-auth.md#embeddedAuthServer, EmbeddedAuthServerConfig. */
export const authServerFields: Fields = {
  '': list(`
    issuer! string
    upstreamProviders! list of object
    authorizationEndpointBaseUrl string
    allowConfidentialClientRegistration boolean
    baselineClientScopes list of string
    cimd object
    disableUpstreamTokenInjection boolean
    hmacSecretRefs list of object
    signingKeySecretRefs list of object
    insecureAllowHTTP boolean
    primaryUpstreamProvider string
    storage object
    tokenLifespans object`),
  cimd: list(`
    enabled! boolean
    cacheFallbackTtl string
    cacheMaxSize int32`),
  tokenLifespans: list(`
    accessTokenLifespan string
    authCodeLifespan string
    refreshTokenLifespan string
    refreshTokenGracePeriod string`),
  storage: list(`
    type string
    redis object`),
  'storage.redis': list(`
    aclUserConfig! object
    addr string
    clusterMode boolean
    sentinelConfig object
    tls object
    sentinelTls object
    dialTimeout string
    readTimeout string
    writeTimeout string`),
  'storage.redis.aclUserConfig': list(`
    passwordSecretRef! object
    usernameSecretRef object`),
  'storage.redis.sentinelConfig': list(`
    masterName! string
    db int32
    sentinelAddrs list of string
    sentinelService object`),
  'storage.redis.sentinelConfig.sentinelService': list(`
    name! string
    namespace string
    port int32`),
  'storage.redis.tls': list(`
    caCertSecretRef object
    insecureSkipVerify boolean`),
  'storage.redis.sentinelTls': list(`
    caCertSecretRef object
    insecureSkipVerify boolean`),
  'upstreamProviders[]': list(`
    name! string
    type! string
    oidcConfig object
    oauth2Config object`),
  'upstreamProviders[].oidcConfig': list(`
    issuerUrl! string
    clientId! string
    clientSecretRef object
    redirectUri string
    scopes list of string
    provider string
    additionalAuthorizationParams map to string
    subjectClaim string
    userInfoOverride object`),
  'upstreamProviders[].oauth2Config': list(`
    authorizationEndpoint! string
    tokenEndpoint! string
    clientId string
    clientSecretRef object
    dcrConfig object
    redirectUri string
    scopes list of string
    provider string
    additionalAuthorizationParams map to string
    tokenResponseMapping object
    identityFromToken object
    userInfo object`),
  'upstreamProviders[].oauth2Config.dcrConfig': list(`
    discoveryUrl string
    registrationEndpoint string
    initialAccessTokenRef object
    softwareId string
    softwareStatement string`),
  'upstreamProviders[].oauth2Config.identityFromToken': list(`
    subjectPath! string
    namePath string
    emailPath string`),
  'upstreamProviders[].oauth2Config.tokenResponseMapping': list(`
    accessTokenPath! string
    expiresInPath string
    refreshTokenPath string
    scopePath string`),
  ...under('upstreamProviders[].oauth2Config.userInfo', userInfo),
  ...under('upstreamProviders[].oidcConfig.userInfoOverride', userInfo),
}

const secretRef = list(`
  name! string
  key! string`)

export const cloudSts: Fields = {
  '': list(`
    region! string
    fallbackRoleArn string
    roleMappings list of object
    roleClaim string
    service string
    sessionDuration int32
    sessionNameClaim string
    subjectProviderName string`),
  'roleMappings[]': list(`
    roleArn! string
    claim string
    matcher string
    priority int32`),
}

/** docs/specification/external-auth.md. */
export const externalAuthFields: Kinds = {
  MCPExternalAuthConfig: {
    spec: list(`
      type! string
      cloudSts object
      bearerToken object
      embeddedAuthServer object
      headerInjection object
      obo object
      tokenExchange object
      upstreamInject object`),
    ...under('spec.cloudSts', cloudSts),
    'spec.bearerToken': list('tokenSecretRef! object'),
    'spec.bearerToken.tokenSecretRef': secretRef,
    'spec.headerInjection': list(`
      headerName! string
      valueSecretRef! object`),
    'spec.upstreamInject': list('providerName! string'),
    'spec.tokenExchange': list(`
      tokenUrl! string
      audience! string
      clientId string
      clientSecretRef object
      scopes list of string
      externalTokenHeaderName string
      subjectProviderName string
      subjectTokenType string`),
    'spec.obo': list(`
      audience string
      scopes list of string
      authority string
      tenantId string
      clientId string
      clientSecretRef object
      cacheSkew string
      subjectTokenProviderName string`),
    ...under('spec.embeddedAuthServer', authServerFields),
    ...configStatus,
  },
}
