/** Translates individual parts of a message between the two protocol eras. */
export { type Abilities, abilitiesIn, requireAbility } from './abilities.ts'
export { AskingCall, type CallStep } from './asking-call.ts'
export type { DirectCall, DirectResult } from './direct-call.ts'
export { requireVisits, sessionError, statelessError, visitRequests } from './errors.ts'
export {
  declaresStateless,
  eraOfError,
  foreignStatuses,
  initializeParams,
  opensSession,
  requestMeta,
  type SessionServer,
  sessionServer,
  sessionVersionFor,
} from './introduction.ts'
export { ServerRequests } from './server-requests.ts'
export { levelIn, passesLevel, uriIn } from './session-settings.ts'
export {
  acknowledgement,
  announcedLists,
  changedList,
  filterText,
  type ListenFilter,
  listChangedMethod,
  readFilter,
  subscriptionEnd,
  subscriptionOf,
  withSubscription,
} from './subscriptions.ts'
export { sessionParams, statelessParams } from './params.ts'
export {
  type Ask,
  type AskReply,
  askingMethods,
  isInterim,
  respondToInputRequests,
  sendInRounds,
} from './questions.ts'
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
