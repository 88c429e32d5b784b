/** Public API of the config module. */
export { canStart } from './executable.ts'
export { clientLink, clientLinks } from './common/client-links.ts'
export {
  type AuthServerConfig,
  type AuthServerSecrets,
  type StorageSettings,
  type CimdSettings,
  type DeclaredClientSettings,
  type FederatedSettings,
  type SpiffeSettings,
  type OAuth2UpstreamSettings,
  type OidcUpstreamConfig,
  type UpstreamRegistrationConfig,
  type UserInfoSettings,
} from './authserver/settings.ts'
export { authServerViolations, parseNetwork } from './authserver/validate.ts'
export { type CatalogueConfig, loadCatalogueConfig } from './catalogue/file.ts'
export { loadAuthServerConfig } from './authserver/file.ts'
export {
  followAssertionPolicies,
  followDeclaredClients,
  followExchangePolicies,
} from './authserver/clients.ts'
export type {
  AssertionPolicySettings,
  SubjectBindingSettings,
  ExchangePolicySettings,
  TrustedIssuerSettings,
} from './authserver/trusted-issuers.ts'
export { followTokenPath, identifierOf, parseKeepingDigits, parseTokenPath } from './authserver/token-path.ts'
export {
  environment,
  loadVmcpConfig,
  parseVmcpConfig,
  type VmcpConfig,
  vmcpEnvironment,
  stateKeys,
  vmcpVariableViolations,
  watchFile,
} from './vmcp/file.ts'
export type { ExcludedBackend } from '../../schemas/index.ts'
export { type ServeFlags, serveSettings } from './vmcp/serve.ts'
export { type Environment, readVariable, shutdownGraceMs, variables } from './proxy/env.ts'
export { type ProxySettings, resolveProxyConfig } from './proxy/settings.ts'
export type { ExchangeSettings } from './proxy/exchange.ts'
export { type FlagRow, proxyFlags, type ProxyInput } from './proxy/flags.ts'
export type { IncomingOidc } from './proxy/oidc.ts'
export { type OAuthSettings, offeredLogin, userLogin, userLoginVariables } from './proxy/remote.ts'
export type { MachineGrantRequest } from './proxy/identity-grant.ts'
export type { MachineGrantSource } from './proxy/machine-grant.ts'
export type { RenewalPace } from './proxy/renewal-pace.ts'
export { parseTarget, shownUri, type TargetAddress } from './proxy/target.ts'
export { servingFiles } from './common/serving-files.ts'
export { localTokensVariable, readLocalTokens } from './common/local-tokens.ts'
export { readSecretFile, rotatingSecret } from './common/secrets.ts'
export { systemReason } from './common/system-reason.ts'
export { isUtf16, readTextFile } from './common/text-file.ts'
export { loadProxyFile, needsVirtualServer, resolveProxyFile } from './proxy/file.ts'
export { readWebhookFiles } from './proxy/webhook-files.ts'
export { deepProxyFile, requireNoOtherFlags } from './vmcp/proxy-flags.ts'
export { virtualServerOf } from './vmcp/from-proxy.ts'
export { readYaml, readYamlTree } from '../../schemas/yaml/index.ts'
