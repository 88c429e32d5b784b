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
export { startVmcp } from './server/start.ts'
export { taskStoreLimits } from './server/tasks.ts'
export { type BackendStateInput, snapshotOffline } from './server/snapshot/snapshot.ts'
export type { LockKeeper } from './catalog/pinning/first-seen.ts'
export { type PartDiff, textDiff } from './catalog/pinning/diff.ts'
export type { PinDetail } from './catalog/pinning/report.ts'
export { pageDigest } from './features/apps/page-locks.ts'
export type { SurveyedPage } from './features/apps/page-survey.ts'
export {
  compareWithLocks,
  type LockComparison,
  type SurveyedBackend,
  surveyBackends,
} from './server/survey.ts'
export { sessionRedisSettings } from './clients/sessions/storage.ts'
