/** Public API of the doctor module: checks of every hop between an MCP client and a server, and known identity providers. */
export {
  failed,
  type Finding,
  ok,
  type CheckOutcome,
  type Result,
  skipped,
  warning,
} from './report/finding.ts'
export { makeClean } from './report/text.ts'
export { type Check, walk } from './report/walk.ts'
export { profileNamed, profiles } from './profiles/index.ts'
export { examineCluster } from './cluster/examine.ts'
export { at, type ClusterReader, listAt, type ObjectPath, type ReadFailure, textAt } from './cluster/read.ts'
export {
  conditionsOf,
  isBehind,
  isProblem,
  isStale,
  isWarning,
  type ResourceCondition,
} from './cluster/resources.ts'
export { clusterCodes } from './report/codes-cluster.ts'
export { greet } from './probe/greeting.ts'
export { examineGateway } from './gateway/examine.ts'
export { examineRedis } from './store/examine.ts'
export { type ExamineOptions, examineRemote } from './remote/examine.ts'
export type { SignInOptions } from './sign-in/state.ts'
