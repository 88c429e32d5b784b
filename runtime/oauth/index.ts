/** Public API of the OAuth module: client functions shared by the proxy, the outgoing strategies and the server. */
export {
  hintedClient,
  hintedTokens,
  hintedParams,
  hintedScopes,
  hintFor,
  isProviderId,
  type ProviderId,
  providerIds,
} from './provider-hints.ts'
export { oauthCode, sendOAuthError } from './response.ts'
export {
  authorizationUrl,
  isEqualSecret,
  isOurState,
  type LoginSecrets,
  makeLoginSecrets,
  managedParameters,
  readAuthorizationCode,
} from './authorization.ts'
export { type Fetch, type JsonRecord, readJson, requiredString, send } from './call.ts'
export {
  type Challenge,
  findChallenge,
  formatChallenge,
  parseChallenges,
  proofAlgorithm,
  tokenChallenge,
} from './challenge.ts'
export { type ClientAuthMethod, type OAuthClient } from './client/client.ts'
export { type AssertionAlg, assertionAlgs, type ClientKey, readClientKey } from './client/client-key.ts'
export { idTokenType, requestIdentityAssertion } from './client/identity-assertion.ts'
export { checkGrantAudience, readGrantAssertion } from './client/grant-assertion.ts'
export { fetchClientDocument, isClientDocumentUrl } from './metadata/client-document.ts'
export { isTransient, OAuthClientError, serverWords, withoutSecrets } from './client-error.ts'
export {
  endsRefreshToken,
  tokenRefusal,
} from './refusals/token-refusal.ts'
export { peerWords, wordsOf } from './refusals/peer-words.ts'
export { makeNonces, type Nonces } from './dpop/nonces.ts'
export {
  proofAlgorithms,
  ProofRefused,
  proofTarget,
  type VerifiedProof,
  verifyProof,
} from './dpop/proof.ts'
export { isProofKey, type ProofKey, Prover, type TokenProof } from './dpop/prover.ts'
export { makeReplayCheck, type MarkProof, maxMarks } from './dpop/replay.ts'
export { introspect } from './introspection.ts'
export { openBrowser } from './login/browser.ts'
export { type Callback, openCallback, type Redirect, unavailablePort } from './login/callback.ts'
export { isRefusedClient, refusesClientAtLogin } from './login/refusal.ts'
export { withOffline } from './metadata/server-metadata.ts'
export { type TokenBinding, confirmationClaim, isConfirmed, readConfirmation } from './confirmation.ts'
export {
  accessTokenTypes,
  hasIdTokenClaims,
  maxTokenLength,
  skewSec,
  TokenRefused,
  verifyIdToken,
  verifyJwt,
} from './jwt.ts'
export { type Keys, localKeys, RemoteKeys } from './keys.ts'
export { revokeToken } from './revocation.ts'
export {
  type RegistrationRequest,
  deleteRegistration,
  nativeClient,
  registerClient,
  registeredClient,
  type Registration,
  updateRegistration,
} from './client/registration.ts'
export { discoverResource, type ResourceMetadata } from './metadata/resource-metadata.ts'
export {
  checkServerMetadata,
  conventionalServer,
  discoverServer,
  fetchServerMetadata,
  missingEndpoint,
  type ServerMetadata,
  supportsS256,
  typedServer,
} from './metadata/server-metadata.ts'
export {
  clientCredentialsGrant,
  codeGrant,
  jwtBearerGrant,
  refreshGrant,
  type ProofUse,
  tokenExchangeGrant,
  type TokenProofOptions,
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
