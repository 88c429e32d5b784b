/** Public API of the virtual server. */
export {
  allWarnings,
  checkAll,
  checkStart,
  checkToolLocks,
  type StartParts,
  startWarnings,
} from './server/start-check.ts'
export {
  defaults as vmcpDefaults,
  type ServingWorker,
  type StartOptions,
  type VmcpServer,
} from './server/options.ts'
export { startVmcp } from './server/server.ts'
export { type BackendStateInput, snapshotOffline } from './server/snapshot/snapshot.ts'
export type { LockKeeper } from './catalog/pinning/first-seen.ts'
export type { PinDetail } from './catalog/pinning/report.ts'
export {
  compareWithLocks,
  type LockComparison,
  type SurveyedBackend,
  surveyBackends,
} from './server/survey.ts'
export { sessionRedisSettings } from './clients/sessions/storage.ts'
