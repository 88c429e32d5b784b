/**
 * Public API for Cedar: parses policies and entities within limits, and evaluates them. Hooks check policies and
 * entities at admission and in syncs; the runtime checks them at startup and evaluates them. This entry point is
 * separate, because it loads the engine.
 */
export { cedarViolations } from './check.ts'
export {
  type AuthorizationCall,
  callEngine,
  type CedarValue,
  engineAnswers,
  EngineFailure,
  engineFailures,
  type EngineError,
  type PolicyJson,
} from './engine.ts'
export { originTypes, readEntities } from './entities.ts'
export { cedarWarnings, consoleActions, tokenFacts } from './lint.ts'
export { namedOrigins } from './origins.ts'
export { policyJson, readPolicies } from './policies.ts'
export { PreparedPolicies } from './prepared.ts'
export { keyOf, toUid, type Uid } from './uid.ts'
