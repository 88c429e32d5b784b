/** Translation between the two protocol eras, message part by message part. */
export { type Abilities, abilitiesIn, requireAbility, withoutTasks } from './abilities.ts'
export { AskingCall, type CallStep } from './asking-call.ts'
export type { DirectCall, DirectResult } from './direct-call.ts'
export { isDeclined, sessionError, statelessError, visitRequests } from './errors.ts'
export { passesLevel } from './log-level.ts'
export { type OutgoingParams, sessionParams, statelessParams } from './params.ts'
export { type Ask, askMethods, type AskReply, askingMethods, respondToInputRequests } from './questions.ts'
export { withoutReservedMeta } from './reserved-meta.ts'
export {
  completeResult,
  completeResultInTurns,
  inputRequired,
  maxBackendStateBytes,
  sessionResult,
  sessionResultInTurns,
  statusOf,
} from './results.ts'
