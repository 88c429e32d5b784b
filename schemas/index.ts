/** Public API of the contract module, for the hooks and the runtime. */
export { acceptedTypes, isOfType, type SchemaType, type ValuePath } from './json/accepted-types.ts'
export {
  type AddressPolicy,
  type DialPolicy,
  addressViolation,
  endpointPolicy,
  isLocalName,
  isRefusedAddress,
  serviceViolation,
} from './addresses.ts'
export { canonicalJson, hashOf } from './canonical.ts'
export { consoleStartSettings } from './console-settings.ts'
export {
  type NamingSettings,
  type UnknownBackend,
  unknownBackends,
  type WorkflowDefinition,
  upstreamFilterViolations,
} from './validation/backend-names.ts'
export { clientKeyViolations, hasPrivateMembers } from './auth/client-keys.ts'
export { type CelProgram, compileBoundedCel, compileCel } from './validation/cel.ts'
export { type ExcludedBackend, withoutBroken } from './validation/excluded-backends.ts'
export {
  type IssuerSettings,
  type IssuerViolation,
  groupPrefixOf,
  issuerPrefix,
  issuerViolations,
  prefixConflicts,
  subjectPrefixOf,
  dpopModeViolation,
} from './auth/issuers.ts'
export { isSpiffeId, matchesPrincipal, spiffeViolations } from './auth/spiffe.ts'
export {
  defaultAssertionAge,
  federatedViolations,
  serviceAccountOf,
  trustViolations,
} from './auth/trusted-issuers.ts'
export { formatDuration, parseDuration, timerMs } from './duration.ts'
export {
  type ErrorCode,
  GatehouseError,
  type ErrorOptions,
  errors,
  invalidConfig,
  ModuleError,
} from './errors.ts'
export { cloneJson, exactInteger, exactJson, isRawJson, roundedNumber } from './json/exact-json.ts'
export { type Fields, fieldsOf, isFields, jsonFields, listOf, own } from './validation/fields.ts'
/** Types of documents as users write them: fields with a default are optional. */
export type * as input from './generated/input.ts'
/** Types of documents after defaulting: fields with a default are required. */
export type * from './generated/types.ts'
export {
  forwarded,
  headerNameViolation,
  type HeaderUse,
  headerValueViolation,
  hopByHop,
  isHeaderName,
  isHeaderValue,
  isRestrictedHeader,
  maxHeaderNameLength,
  maxHeaderValueLength,
  restrictedHeaders,
} from './headers.ts'
export { home, imageReference } from './home.ts'
export {
  hiddenAnywhere,
  hiddenInLine,
  hiddenInText,
  unicodeEscape,
  visibleJson,
} from './hidden-characters.ts'
export {
  isColoured,
  isLogged,
  logFormats,
  logLevels,
  type LogFormat,
  logFormatFor,
  type LogLevelName,
  textLine,
} from './log-line.ts'
export { isKindName, type Kind, type KindName, kindOf, kinds } from './kinds.ts'
export {
  authServerFile,
  consoleSecretVariable,
  envName,
  excludedPrefix,
  isDnsLabel,
  isDnsSubdomain,
  lastAppliedAnnotation,
  localCommandAnnotation,
  serverTools,
  shortName,
} from './names.ts'
export { prefixedName, reservedOverrides, reservedTools } from './validation/reserved-tools.ts'
export { pinScheme, runtimeToolLock } from './tool-lock.ts'
export { isSwitchedOn, switchViolation } from './switches.ts'
export { below, formatViolations, nearest, type Violation, shapeOf } from './validation/violations.ts'
export { apiGroup, apiVersion, category, type KindInfo, type PrinterColumn } from './schema.ts'
export {
  type RuntimeName,
  type RuntimeResult,
  validateManifest,
  validManifest,
  validateRuntime,
  withDefaults,
} from './validation/validate.ts'
export { byText } from './canonical.ts'
