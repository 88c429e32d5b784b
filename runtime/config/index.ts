/** Public API of the config module. */
export {
  type AuthServerConfig,
  authServerDefaults,
  type AuthServerSecrets,
  type AuthServerStorage,
  type CimdConfig,
  type ClientRegistrationConfig,
  defaultScopesSupported,
  type IdentityFromToken,
  type OAuth2UpstreamConfig,
  type OidcUpstreamConfig,
  type SecretSource,
  type TokenResponseMapping,
  type UpstreamConfig,
  type UpstreamRegistrationConfig,
  type UserInfoConfig,
} from './authserver/settings.ts'
export { authServerViolations, parseNetwork } from './authserver/validate.ts'
export {
  authServerEnvironment,
  type Environment,
  loadAuthServerConfig,
  parseAuthServerConfig,
} from './authserver/file.ts'
export {
  followTokenPath,
  identifierOf,
  parseKeepingDigits,
  parseTokenPath,
  type TokenPath,
} from './authserver/token-path.ts'
export {
  environment,
  type LoadedVmcpConfig,
  loadVmcpConfig,
  parseVmcpConfig,
  type ReadVmcpConfig,
  readVmcpConfig,
  type VmcpConfig,
  vmcpEnvironment,
  vmcpSwitchViolations,
  watchFile,
} from './vmcp/file.ts'
export type { ExcludedBackend } from '../../schemas/index.ts'
export { type ServeFlags, type ServeSettings, serveSettings } from './vmcp/serve.ts'
export { readVariable, variables } from './proxy/env.ts'
export type { InjectedHeader } from './proxy/injected-headers.ts'
export { type ProxyConfig, resolveProxyConfig } from './proxy/settings.ts'
export type { ExchangeSettings } from './proxy/exchange.ts'
export { type FlagRow, proxyFlags, type ProxyInput } from './proxy/flags.ts'
export type { ProxyOidc } from './proxy/oidc.ts'
export { type OAuthSettings, offeredLogin, type RemoteAuth } from './proxy/remote.ts'
export type { RenewalPace } from './proxy/renewal-pace.ts'
export { parseTarget, shownUri, type Target } from './proxy/target.ts'
export {
  makeSecretsProvider,
  readSecretFile,
  rotatingSecret,
  type SecretsProvider,
} from './common/secrets.ts'
export { loadProxyFile, needsVirtualServer, resolveProxyFile } from './proxy/file.ts'
export { type VirtualServer, virtualServerOf } from './vmcp/from-proxy.ts'
export { readYaml, readYamlTree, type YamlDocument, type YamlError, type YamlRead } from './common/yaml.ts'
