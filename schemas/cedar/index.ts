/**
 * Cedar: reading policies and entities within bounds, and the engine that evaluates them. Hooks check at admission and in
 * the sync, the runtime checks at start and decides. A public API of its own, because it brings the engine along.
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
export { cedarWarnings, consoleActions } from './lint.ts'
export { namedOrigins } from './origins.ts'
export { policyJson, readPolicies } from './policies.ts'
export { PreparedPolicies } from './prepared.ts'
export { keyOf, toUid, type Uid } from './uid.ts'
