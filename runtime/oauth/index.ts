/** Public API of the OAuth module: client primitives shared by the proxy, the outgoing strategies and the server. */
export { type OAuthResponse, oauthResponse, oauthCode, sendOAuthError } from './response.ts'
export {
  type AuthorizationRequest,
  authorizationUrl,
  isOurState,
  type LoginSecrets,
  makeLoginSecrets,
  managedParameters,
  readAuthorizationCode,
  s256,
} from './authorization.ts'
export {
  type CallOptions,
  type Fetch,
  isObject,
  type JsonObject,
  optionalString,
  optionalStrings,
  readJson,
  requiredString,
  send,
} from './call.ts'
export { type Challenge, findChallenge, formatChallenge, parseChallenges } from './challenge.ts'
export { chooseAuthMethod, type ClientAuthMethod, type OAuthClient } from './client.ts'
export {
  checkClientDocument,
  clientDocument,
  clientDocumentUrlViolation,
  fetchClientDocument,
  isClientDocumentUrl,
} from './metadata/client-document.ts'
export {
  type OAuthErrorDetails,
  type OAuthErrorKind,
  isGrantRefused,
  isTransient,
  OAuthClientError,
} from './client-error.ts'
export { introspect } from './introspection.ts'
export {
  accessTokenTypes,
  type IdTokenRules,
  type JwtRules,
  type RefusalReason,
  signatureAlgorithms,
  skewSec,
  TokenRefused,
  verifyIdToken,
  verifyJwt,
} from './jwt.ts'
export { type Keys, keySetTimes, localKeys, RemoteKeys, type RemoteKeysOptions } from './keys.ts'
export {
  type ClientMetadata,
  registerClient,
  registeredClient,
  type Registration,
  updateRegistration,
} from './registration.ts'
export { discoverResource, type ResourceMetadata } from './metadata/resource-metadata.ts'
export {
  checkServerMetadata,
  conventionalServer,
  discoverServer,
  fetchServerMetadata,
  type ServerDiscoveryOptions,
  type ServerMetadata,
  supportsS256,
  typedServer,
} from './metadata/server-metadata.ts'
export {
  clientCredentialsGrant,
  codeGrant,
  grantTypes,
  joinScopes,
  jwtBearerGrant,
  refreshGrant,
  tokenExchangeGrant,
  type TokenRequestOptions,
  type TokenSet,
} from './token.ts'
export {
  canonicalResource,
  endpointViolation,
  resourceCovers,
  resourceMetadataPath,
  resourceMetadataUrl,
  resourceMetadataUrls,
  serverMetadataUrls,
} from './urls.ts'
